"""A bounded cache of what could be computed or sent again."""

from __future__ import annotations

import collections
from typing import Any


class Remembered(collections.OrderedDict[Any, Any]):
    """Results by what was asked for; the least recently used ones are dropped."""

    def __init__(self, most: int) -> None:
        """Holds at most `most` results."""
        super().__init__()
        self.most = most

    def put(self, key: Any, value: Any) -> None:
        """Adds a result, as the one used last."""
        self[key] = value
        self.move_to_end(key)
        while len(self) > self.most:
            self.popitem(last=False)

    def has(self, key: Any) -> bool:
        """Whether it is there; counts as a use."""
        if key in self:
            self.move_to_end(key)
        return key in self
