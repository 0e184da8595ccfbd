"""Content-addressed bytes: files in the home folder that the store's rows name."""

from holdfast.blobs.blobs import Blobs, Reading
from holdfast.blobs.folder import Folder
from holdfast.core.blobs import FOLDER

__all__ = ["FOLDER", "Blobs", "Folder", "Reading"]
