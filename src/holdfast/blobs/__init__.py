"""Content-addressed bytes: files in the home folder that the store's rows name."""

from holdfast.blobs.blobs import Blobs
from holdfast.blobs.folder import FOLDER

__all__ = ["FOLDER", "Blobs"]
