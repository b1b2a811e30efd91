"""Arguments as the core takes them; what does not fit raises `kvscope.Error` naming the argument."""

from __future__ import annotations

import operator
import os
import reprlib
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from kvscope import _core

SHAPES = "Give keys and values as (KV heads, tokens, head_dim), queries as (query heads, last tokens, head_dim)"


def fail(sentence: str, place: str, remedy: str) -> NoReturn:
    """Raises the program's error."""
    _core.fail(sentence, place, remedy)
    raise AssertionError("unreachable")


def _plain(value: Any, place: str) -> npt.NDArray[Any] | None:
    """A numpy array, or None where the value holds no numbers; torch's bfloat16, which numpy lacks, is widened."""
    if np.ma.is_masked(value):
        fail("some numbers are masked", place, "Fill them or leave them out")
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return None
    return array if array.dtype.kind in "fiu" else None


def _single(numbers: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):  # what is too large for a float becomes infinity and is refused
        return np.ascontiguousarray(numbers, dtype=np.float32)


def tensor(value: Any, place: str) -> npt.NDArray[np.float32]:
    """[heads, rows, head_dim], finite and in row order; a leading batch of one is taken off."""
    numbers = _plain(value, place)
    if numbers is None:
        fail("the argument is no array of numbers", place, SHAPES)
    if numbers.ndim == 4 and numbers.shape[0] == 1:
        numbers = numbers[0]
    if numbers.ndim != 3:
        fail(f"the array has {numbers.ndim} axes", place, SHAPES)
    if numbers.size == 0:
        fail("the array is empty", place, SHAPES)
    single = _single(numbers)
    finite = np.isfinite(single)
    if not finite.all():
        head, row, column = np.argwhere(~finite)[0]
        what = "NaN" if np.isnan(single[head, row, column]) else "infinity"
        fail(f"{what} in head {head}, row {row}", place, "Mask or repair it first")
    return single


def row(value: Any, place: str, largest: int = 0) -> list[Any]:
    """One axis of finite numbers, or of whole ones up to `largest`; None is the empty row."""
    numbers = np.empty(0) if value is None else _plain(value, place)
    if numbers is None or numbers.ndim != 1 or not np.isfinite(numbers).all():
        fail("the argument is no row of finite numbers", place, "Give numbers along one axis")
    if not largest:
        return list(_single(numbers).tolist())
    if (numbers != np.round(numbers)).any():
        fail("not all numbers are whole", place, "Give whole numbers")
    return [integer(int(number), place, -largest, largest) for number in numbers]


def integer(value: Any, place: str, least: int = 0, largest: int = 2**31 - 1) -> int:
    """A whole number in a range."""
    try:
        number = operator.index(value)
    except TypeError:
        fail(f"{reprlib.repr(value)} is no whole number", place, f"Give one from {least} on")
    if not least <= number <= largest:
        fail(f"{number} is out of range", place, f"Give a number from {least} to {largest}")
    return number


def number(value: Any, place: str) -> float:
    """A finite number."""
    try:
        read = float(value)
    except (TypeError, ValueError):
        fail(f"{reprlib.repr(value)} is no number", place, "Give a number")
    if not np.isfinite(read):
        fail(f"{read} is not finite", place, "Give a finite number")
    return read


def text(value: Any, place: str, remedy: str) -> str:
    """A string."""
    if not isinstance(value, str) or any("\ud800" <= letter <= "\udfff" for letter in value):
        fail(f"{reprlib.repr(value)} is no text", place, remedy)
    return value


def policy(value: Any) -> str:
    """ID[:VARIANT][,parameter=value]...[@BUDGET]."""
    return text(value, "policy", 'Write it like "keydiff:kvpress@0.25"')


def cut(value: Any) -> str:
    """A cut as the command line has it, or a token number."""
    remedy = 'Write a token number, "segment:context", "last:256" or "none"'
    return text(value if isinstance(value, str) else str(integer(value, "cut")), "cut", remedy)


def seed(value: Any) -> int:
    """A whole number of 64 bits."""
    return integer(value, "seed", largest=2**64 - 1)


def names(value: Any, place: str) -> list[str]:
    """A name, or several."""
    several: Iterable[Any] = [value] if isinstance(value, str) or not isinstance(value, Iterable) else value
    return [text(name, place, "Give names; `kvscope measures` lists them") for name in several]


def path(value: Any, place: str) -> str:
    """A file's path."""
    try:
        decoded = os.fsdecode(value)
        decoded.encode()  # the core takes UTF-8
    except TypeError:
        fail(f"{reprlib.repr(value)} is no path", place, "Give the path of a file")
    except UnicodeEncodeError:
        fail(f"the path {reprlib.repr(value)} is not UTF-8", place, "Rename the file or the folder")
    return decoded
