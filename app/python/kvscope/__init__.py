"""What KV-cache compression keeps, what it evicts and what that costs.

The same engine and the same words as the program `kvscope`: a list, a number and a figure are the same wherever they
were asked for.
"""

from kvscope._core import Error, Selection, __version__
from kvscope.captures import Capture, Rope, evict, measure, open, policies
from kvscope.figures import Figure, plot

__all__ = [
    "Capture",
    "Error",
    "Figure",
    "Rope",
    "Selection",
    "__version__",
    "evict",
    "measure",
    "open",
    "plot",
    "policies",
]
