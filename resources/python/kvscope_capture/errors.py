"""The one error type for what a user, a model or a file can cause."""


class CaptureError(Exception):
    """A sentence, the place it is about, and what to do; shown as one line, exit code 2."""

    def __init__(self, sentence: str, place: str = "", remedy: str = "") -> None:
        """`place` names an option, a layer or a data set; `remedy` is an imperative clause."""
        self.sentence, self.place, self.remedy = sentence, place, remedy
        super().__init__(": ".join(part for part in (place, sentence) if part) + (f". {remedy}." if remedy else ""))
