"""The tools for files: those of a session's folder, and what an agent notes for later."""

from holdfast.tools.files.attaching import AttachFile
from holdfast.tools.files.reading import ListFiles, ReadFile, SearchFiles
from holdfast.tools.files.roots import Roots
from holdfast.tools.files.writing import EditFile, WriteFile

__all__ = ["AttachFile", "EditFile", "ListFiles", "ReadFile", "Roots", "SearchFiles", "WriteFile"]
