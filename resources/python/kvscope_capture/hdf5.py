"""HDF5 files that are written, so that a full disk ends in an error and not in a crash."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import h5py

FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
MARGIN = 1 << 16  # bytes of what HDF5 writes beside the numbers


@contextlib.contextmanager
def written(path: pathlib.Path, mode: str, room: int = 0, **options: Any) -> Iterator[h5py.File]:
    """The file, open for writing; what was written is on the disk when the block ends. `options` are those of h5py.

    `room`: bytes of numbers that are going to be added to the file, which stays as it is where the disk lacks them.
    Errors (OSError, RuntimeError): it cannot be opened or written. HDF5 closes an object whose last bytes cannot be
    written only in part, and closes it again when the object is freed or the process ends, which crashes. A file that
    cannot be flushed is therefore not closed: its objects stay open until the process ends.
    Write a data set with `put`, which reports a full disk while the data set can still be left open.
    """
    if room:
        _reserve(path, room + MARGIN)
    file = h5py.File(path, mode, **options)
    try:
        yield file
        file.flush()
    finally:
        _close(file)


def _reserve(path: pathlib.Path, more: int) -> None:
    """Takes `more` bytes behind the end of the file; HDF5 gives back what it has not used when it closes the file.

    Errors (OSError): the disk is full. Where the system or the file system cannot reserve, nothing is done.
    """
    if not hasattr(os, "posix_fallocate"):
        return
    descriptor = os.open(path, os.O_RDWR)
    try:
        end = os.fstat(descriptor).st_size
        try:
            os.posix_fallocate(descriptor, end, more)
        except OSError as error:
            os.ftruncate(descriptor, end)
            if error.errno in FULL:
                raise
    finally:
        os.close(descriptor)


def _close(file: h5py.File) -> None:
    try:
        file.flush()
    except (OSError, RuntimeError):
        for opened in h5py.h5f.get_obj_ids(file.id, h5py.h5f.OBJ_ALL):
            h5py.h5i.inc_ref(opened)  # one reference that nobody gives back
    else:
        file.close()


def put(group: h5py.Group, name: str, data: Any, **storage: Any) -> h5py.Dataset:
    """A new data set, whose numbers have left HDF5's cache. Errors: those of `written`."""
    node = group.create_dataset(name, data=data, **storage)
    node.flush()
    return node
