"""Rows of `/calibration/<policy>/<variant>`: what a selection cost when it was tried on the model.

Calibration is not part of a capture's hash, so adding rows orphans no list. A small capture is replaced as a whole (a
copy beside it, then renamed); one of more than COPIED_BYTES gets its rows, some kilobytes, in place.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
from collections.abc import Iterator, Mapping

import h5py
import numpy as np
import numpy.typing as npt

from kvscope_capture.capture_file import json_text
from kvscope_capture.errors import CaptureError
from kvscope_capture.hdf5 import put, written
from kvscope_capture.locking import edited_copy, locked
from kvscope_capture.version import VERSION
from kvscope_press.recorded_selection import RecordedSelection

COLUMNS = "retention,nll_context,nll_full,nll_compressed,context_id"
TOOL = f"kvscope_press {VERSION}"
COPIED_BYTES = 2 << 30
Rows = npt.NDArray[np.float64]
Model = tuple[str, str, str]  # name, revision, type that it ran in
LISTS = "lists"  # attribute: the digest of each row's list, JSON in the order of the rows


@dataclasses.dataclass(frozen=True)
class Row:
    """One measurement: fraction kept; mean NLL in nats a token of the context, and of the target, full and pruned."""

    retention: float
    nll_context: float
    nll_full: float
    nll_compressed: float
    context_id: int = 0


@dataclasses.dataclass(frozen=True)
class Setting:
    """What rows of one data set have in common."""

    cut: int
    target_tokens: int
    parameters: str
    model: str = ""
    model_revision: str = ""
    compute_dtype: str = ""
    simulated: int = 0  # 1: the list evicts while the prompt is read, on tensors of full attention
    arithmetic: str = ""  # of the list, where it is not exact

    @classmethod
    def of(cls, selection: RecordedSelection, target_tokens: int, model: Model = ("", "", "")) -> Setting:
        """The selection's cut and resolved parameters, as sorted JSON; `model`: its name, revision and type."""
        parameters = json_text(dict(selection.parameters))
        return cls(selection.cut, target_tokens, parameters, *model, int(selection.simulated), selection.arithmetic)

    def attributes(self) -> Mapping[str, str | int]:
        """As they are stored beside the rows."""
        return {"columns": COLUMNS, "tool": TOOL, **dataclasses.asdict(self)}


@contextlib.contextmanager
def _editable(capture: pathlib.Path) -> Iterator[h5py.File]:
    capture = capture.resolve()  # a link stays one
    try:
        small = capture.stat().st_size <= COPIED_BYTES
        with edited_copy(capture) if small else contextlib.nullcontext(capture) as path, written(path, "r+") as file:
            yield file
    except (OSError, RuntimeError) as error:  # a full disk
        raise CaptureError(f"the rows cannot be written ({error})", str(capture), "Make room there") from error


def check_settings(capture: pathlib.Path, wanted: list[tuple[RecordedSelection, Setting, int]], replace: bool) -> None:
    """`wanted` has each list with its setting and the number of its context.

    Errors (CaptureError): rows of another cut, target, parameters, model, arithmetic or tool are there already, or the
    row of another list, unless `replace`; or such rows would be among `wanted` itself.
    """
    first: dict[str, Setting] = {}
    with h5py.File(capture, "r") as file:
        for selection, setting, context_id in wanted:
            name = _name(selection)
            clash = first.setdefault(name, setting) != setting
            if clash or (name in file and not replace and not _fits(file[name], setting)):
                raise CaptureError(
                    "rows with another cut, target, parameters, model, arithmetic or tool are there already",
                    f"{capture}: /{name}",
                    "Add --replace, or evaluate lists of one setting",
                )
            if name in file and not replace and _is_taken(file[name], selection, context_id):
                raise CaptureError(
                    f"the row of another list (another seed?) is there where that of {selection.path} belongs",
                    f"{capture}: /{name}",
                    "Give another --context-id, or --replace",
                )
    _check_distinct([(selection, context_id) for selection, _, context_id in wanted])


def _check_distinct(selections: list[tuple[RecordedSelection, int]]) -> None:
    """Errors (CaptureError): two lists have the same row, like those of two seeds: one would replace the other."""
    seen: dict[tuple[str, float, int], RecordedSelection] = {}
    for selection, context_id in selections:
        place = (_name(selection), round(selection.retention(), 9), context_id)
        if (other := seen.setdefault(place, selection)) is not selection and other.digest() != selection.digest():
            raise CaptureError(
                f"keeps as much as {other.path} by the same policy, and a context has one row for both",
                selection.path,
                "Evaluate them one by one with another --context-id each, or with --dry-run and --out",
            )


def add_rows(
    capture: pathlib.Path, measured: list[tuple[RecordedSelection, Setting, Row]], replace: bool = False
) -> dict[str, int]:
    """Adds rows, in the order of context and retention; one of the same context and retention is replaced.

    Other runs wait meanwhile. Returns by `POLICY:VARIANT` how many rows have a retention between 0 and 1: these
    determine a curve.
    Errors (CaptureError): those of `check_settings`.
    """
    counts: dict[str, int] = {}
    with locked(capture, wait=True):
        check_settings(capture, [(list_, setting, row.context_id) for list_, setting, row in measured], replace)
        with _editable(capture) as file:
            for selection, setting, row in measured:
                name = _name(selection)
                if name in file and not _fits(file[name], setting):
                    del file[name]
                _put(file, name, setting, row, selection.digest())
                retention = file[name][:, 0]
                counts[f"{selection.policy}:{selection.variant}"] = int(((retention > 0) & (retention < 1)).sum())
    return counts


def _name(selection: RecordedSelection) -> str:
    return f"calibration/{_safe(selection.policy)}/{_safe(selection.variant)}"


def _safe(name: str) -> str:
    return name.replace("/", "_") or "recorded"


def _fits(node: h5py.Dataset, setting: Setting) -> bool:
    """Whether the rows have this setting.

    An attribute that older rows lack counts as its default; an unknown revision of the model equals any other.
    """
    default = dataclasses.asdict(Setting(setting.cut, setting.target_tokens, setting.parameters))
    for key, value in setting.attributes().items():
        known = node.attrs.get(key, default.get(key) if key in ("simulated", "arithmetic") else None)
        if known != value and not (key == "model_revision" and "" in (known, value)):
            return False
    return True


def _same(rows: Rows, retention: float, context_id: int) -> npt.NDArray[np.bool_]:
    """Which rows have this retention and context."""
    same: npt.NDArray[np.bool_] = (np.abs(rows[:, 0] - retention) < 1e-9) & (rows[:, 4] == context_id)
    return same


def _is_taken(node: h5py.Dataset, selection: RecordedSelection, context_id: int) -> bool:
    """Whether the row of the selection's retention and this context is that of another list."""
    lists, own = _lists(node), selection.digest()
    return any(lists[i] not in (own, "") for i in np.flatnonzero(_same(node[()], selection.retention(), context_id)))


def _lists(node: h5py.Dataset) -> list[str]:
    lists: list[str] = json.loads(node.attrs.get(LISTS, "[]"))
    return lists if len(lists) == len(node) else [""] * len(node)


def _put(file: h5py.File, name: str, setting: Setting, row: Row, digest: str) -> None:
    old, lists = (file[name][()], _lists(file[name])) if name in file else (np.empty((0, 5)), [])
    stay = np.flatnonzero(~_same(old, row.retention, row.context_id))
    rows = np.vstack([old[stay], np.array(dataclasses.astuple(row), np.float64)])
    lists = [*(lists[i] for i in stay), digest]
    order = np.lexsort((rows[:, 0], rows[:, 4]))
    if name in file:
        del file[name]
    node = put(file, name, rows[order])
    node.attrs.update({**setting.attributes(), LISTS: json_text([lists[i] for i in order])})
