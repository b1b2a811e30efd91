"""One run at a time writes a file: locks that end with the process that holds them, and files replaced as a whole."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator

from kvscope_capture.errors import CaptureError


@contextlib.contextmanager
def locked(path: pathlib.Path, wait: bool = False) -> Iterator[None]:
    """While open, no other run holds the lock of `path`: the file PATH.lock beside it, which is removed afterwards.

    `path` itself may be missing, be replaced, and be read by anybody. A killed run leaves PATH.lock behind, unlocked.
    Errors (CaptureError): another run holds the lock and `wait` is false; the folder cannot be written.
    """
    target = path.resolve()  # a link shares the lock of the file that it names
    lock = target.with_name(target.name + ".lock")
    try:
        descriptor = _locked_descriptor(lock, wait)
    except BlockingIOError as error:
        raise CaptureError("is being written by another run", str(path), "Wait for it") from error
    except OSError as error:
        raise CaptureError(f"cannot be written ({error})", str(lock), "Name a file in another folder") from error
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def _locked_descriptor(lock: pathlib.Path, wait: bool) -> int:
    """Descriptor of the file that has the name now: a previous holder may have removed the one waited for."""
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(descriptor, wait)
            if _has_name(descriptor, lock):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _has_name(descriptor: int, lock: pathlib.Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), lock.stat())
    except FileNotFoundError:
        return False


def _lock(descriptor: int, wait: bool) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK):  # some file systems have no locks
            raise


@contextlib.contextmanager
def replaced(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A new file that takes the place of `path` when the block ends, and is removed when an error ends it.

    Errors (CaptureError): it cannot be written.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise CaptureError(f"cannot be written ({error})", str(path), "Name another file") from error
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def edited_copy(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A copy that takes the place of `path` when the block ends, and is removed when an error ends it.

    Where `path` does not exist, the block creates the copy. A link stays a link.
    """
    path = path.resolve()
    with tempfile.TemporaryDirectory(prefix=f"{path.name}.", dir=path.parent) as folder:
        copy = pathlib.Path(folder) / path.name
        if path.exists():
            shutil.copyfile(path, copy)
        yield copy
        os.replace(copy, path)
