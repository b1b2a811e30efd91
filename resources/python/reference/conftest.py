"""The counts of the comparison, by press and altogether, below pytest's own summary."""

from __future__ import annotations

import collections
import os
from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Adds up what the tests recorded as `counts`: compared, disagreeing, tied, within rounding."""
    sums: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for report in terminalreporter.stats.get("passed", []) + terminalreporter.stats.get("failed", []):
        for name, counts in getattr(report, "user_properties", []):
            if name == "counts" and report.when == "call":
                sums[counts["press"]].update(counts["heads"])
                sums["All"].update(counts["heads"])
    model = os.environ.get("KVSCOPE_TINYLM") or "a random model (KVSCOPE_TINYLM is not set)"
    terminalreporter.write_line(f"REFERENCE on {model}")
    for press, heads in sorted(sums.items(), key=lambda item: item[0] == "All"):
        terminalreporter.write_line(
            f"REFERENCE {press}: {heads['compared']} heads compared, {heads['wrong']} disagree, "
            f"{heads['tied']} differ among equal scores of kvpress, {heads['noisy']} within rounding"
        )
