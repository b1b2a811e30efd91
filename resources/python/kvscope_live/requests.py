"""A request while it waits and runs, and its parameters, read with their types."""

from __future__ import annotations

import dataclasses
from typing import Any

from kvscope_live.errors import BAD_PARAMETERS, LiveError


class Parameters:
    """The `params` of a request. Every reader raises LiveError with the parameter's name where its value is invalid."""

    def __init__(self, values: dict[str, Any]) -> None:
        """`values` as they came."""
        self.values = values

    def __contains__(self, name: str) -> bool:
        """Whether it is given and not null."""
        return self.values.get(name) is not None

    def text(self, name: str, default: str | None = None) -> str:
        """A string; `default` where it is absent or null."""
        return str(self._of(name, str, "text", default))

    def flag(self, name: str) -> bool:
        """True or false; false where it is absent."""
        return bool(self._of(name, bool, "true or false", False))

    def number(self, name: str, default: float | None = None) -> float:
        """Any number."""
        return float(self._of(name, int | float, "a number", default))

    def integer(self, name: str, least: int, most: int, default: int | None = None) -> int:
        """An integer from `least` to `most`."""
        value = self._of(name, int, "an integer", default)
        if not least <= value <= most:
            raise bad(name, f"{value} is not between {least} and {most}")
        return int(value)

    def integers(self, name: str, most: int) -> list[int]:
        """A list of integers from 0 to `most` - 1."""
        values = self.items(name)
        if not all(type(value) is int and 0 <= value < most for value in values):
            raise bad(name, f"is no list of integers from 0 to {most - 1}")
        return values

    def items(self, name: str) -> list[Any]:
        """A list of anything."""
        return list(self._of(name, list, "a list", None))

    def _of(self, name: str, kind: Any, words: str, default: Any) -> Any:
        value = self.values.get(name)
        if value is None:
            value = default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise bad(name, f"is not {words}")
        return value


def bad(name: str, sentence: str) -> LiveError:
    """A parameter that cannot be used."""
    return LiveError(BAD_PARAMETERS, sentence, name)


@dataclasses.dataclass
class Request:
    """Another thread sets `stop` to a code (cancelled, outdated); the work polls it."""

    id: int | str
    method: str
    parameters: Parameters
    blobs: list[bytes]
    stop: int = 0

    @property
    def context(self) -> str:
        """The context it is about; empty where it is about none."""
        return str(self.parameters.values.get("context_id") or "")

    @property
    def generation(self) -> int | None:
        """Number of the sliders' state that asks; None where the request has none."""
        value = self.parameters.values.get("generation")
        return value if type(value) is int else None

    def size(self) -> int:
        """Bytes of its blobs."""
        return sum(map(len, self.blobs))
