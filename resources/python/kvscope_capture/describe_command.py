"""`kvscope-describe MODEL --out FILE.json`: a model's attention as `kvscope convert --config FILE.json` reads it.

Transformers resolves the configuration (defaults, old names, patterns of layers) and runs the model's own code, without
weights; what its layers tell attention is written down. Nothing is downloaded but the configuration.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys

from kvscope_capture.console import Parser, check_output, run_command
from kvscope_capture.errors import CaptureError
from kvscope_capture.locking import replaced
from kvscope_capture.version import add_version


def run(arguments: argparse.Namespace) -> None:
    """Errors (CaptureError): options that cannot be met, a model that cannot be described."""
    if arguments.tokens is not None and arguments.tokens < 1:
        raise CaptureError("must be positive", "--tokens")
    check_output(arguments.out, reads=[pathlib.Path(arguments.model)])
    import transformers

    from kvscope_capture.describe import describe, resolve_config

    transformers.logging.set_verbosity_error()
    config = resolve_config(arguments.model, arguments.revision)
    name = pathlib.Path(arguments.model)
    known = name.parent.name if name.suffix == ".json" else name.name if name.is_dir() else arguments.model
    description = describe(config, known, arguments.tokens)
    with replaced(arguments.out) as temporary:
        temporary.write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")
    print(f"{arguments.out}: {description['model_type']}, {description['num_layers']} layers")


def main(argv: list[str] | None = None) -> int:
    """Exit code 0, 2 with one sentence on stderr, or 130 and 143 when it was stopped."""
    parser = Parser(prog="kvscope-describe", description=__doc__)
    add_version(parser)
    parser.add_argument("model", help="a folder, a config.json or a name that transformers can load")
    parser.add_argument("--revision", help="branch, tag or commit of the model")
    parser.add_argument("--tokens", type=int, help="length of the prompt, where RoPE depends on it (dynamic, longrope)")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="FILE.json")
    arguments = parser.parse_args(argv)
    return run_command("kvscope-describe", lambda: run(arguments))


if __name__ == "__main__":
    sys.exit(main())
