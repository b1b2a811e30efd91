"""The rows of answers that a request asks for. A row that cannot be answered may fail alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kvscope_live.errors import LiveError
from kvscope_live.requests import Request, bad

if TYPE_CHECKING:  # needs torch
    from kvscope_live.selections import Selection

MOST_ROWS = 64


class Rows:
    """The selection of each row, or why there is none.

    A client that asks with `rows_may_fail` gets a row's error in that row, {"selection_id", "error"}, in the form of
    JSON-RPC. For other clients the first row's error fails the whole request.
    """

    def __init__(self, request: Request, find: Callable[[Any], Selection | LiveError | None]) -> None:
        """Errors (LiveError): too many rows; without `rows_may_fail`, a selection that is not there."""
        self.may_fail = request.parameters.flag("rows_may_fail")
        self.ids = request.parameters.items("selection_ids")
        if len(self.ids) > MOST_ROWS:
            raise bad("selection_ids", f"are more than {MOST_ROWS}")
        self._found = [self._one(row, find(name)) for row, name in enumerate(self.ids)]
        self.selections = [one for one in self._found if not isinstance(one, LiveError)]
        self.places = [row for row, one in enumerate(self._found) if not isinstance(one, LiveError)]

    def answers(self, results: Sequence[Any], as_json: Callable[[Selection | None, Any], dict[str, Any]]) -> list[Any]:
        """The rows of the answer, from those of `selections`. Errors (LiveError)."""
        rows: list[Any] = list(self._found)
        for row, result in zip(self.places, results, strict=True):
            rows[row] = self._one(row, result)
        return [
            {"selection_id": name}
            | ({"error": made.as_json()} if isinstance(made, LiveError) else as_json(found, made))
            for name, found, made in zip(self.ids, self._found, rows, strict=True)
        ]

    def _one(self, row: int, made: Any) -> Any:
        if isinstance(made, LiveError) and not self.may_fail:
            made.sentence += f" (row {row + 1} of {len(self.ids)})"
            raise made
        return made
