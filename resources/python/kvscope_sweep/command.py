"""`kvscope-sweep CAPTURE... --policy SPEC... --out TABLE.parquet`: kvscope sweep as tasks of a Dask cluster."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import os
import pathlib
import shlex
import sys
from collections.abc import Iterator
from typing import Any

from kvscope_capture.console import Parser, TimeLeft, check_output, run_command, show
from kvscope_capture.errors import CaptureError
from kvscope_capture.program import find_program
from kvscope_capture.version import add_version
from kvscope_sweep.plan import Options, Plan, make_plan, numbers

LISTS = ("retention", "budget", "metrics")
VALUES = ("cut", "engine", "gpu-memory", "arithmetic", "uniforms", "sketch")


def count(text: str) -> int:
    """A number of processes or workers, at least 1. Errors: argparse.ArgumentTypeError."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """The command line: options of `kvscope sweep`, and those of the cluster."""
    p = Parser(prog="kvscope-sweep", description=__doc__)
    add_version(p)
    p.add_argument("captures", nargs="+", type=pathlib.Path, help="capture files, at the same place on every machine")
    p.add_argument("--out", type=pathlib.Path, required=True, help="FILE.parquet or FILE.json")
    same = p.add_argument_group("as in kvscope sweep", "`kvscope sweep --help` explains them")
    same.add_argument("--policy", nargs="+", action="extend", required=True, metavar="SPEC")
    same.add_argument("--layers", help="like 0,2-3 (default: all)")
    same.add_argument("--seeds", default="0", help="like 0-9 (default: 0)")
    same.add_argument("--vary", nargs="+", action="extend", default=[], metavar="PARAMETER=V1,V2")
    for name in LISTS:
        same.add_argument(f"--{name}", nargs="+", action="extend", default=[])
    for name in VALUES:
        same.add_argument(f"--{name}")
    same.add_argument("--threads", type=int, default=1, help="of one task (default: 1)")
    same.add_argument("--work", action="store_true")
    where = p.add_argument_group("cluster", "default: processes of this machine")
    where.add_argument(
        "--processes", type=count, default=os.cpu_count() or 1, help="on this machine (default: one a core)"
    )
    where.add_argument("--scheduler", help="address or file of a running Dask scheduler (ssh, Kubernetes, MPI)")
    where.add_argument(
        "--cluster",
        metavar="MODULE.CLASS",
        help="started here, set up by Dask's own configuration files, for example dask_jobqueue.SLURMCluster",
    )
    where.add_argument("--jobs", type=count, default=1, help="workers that --cluster is scaled to (default: 1)")
    p.add_argument(
        "--dry-run", action="store_true", help="say tasks, bytes and hours; one task is run to know its time"
    )
    return p


def options_of(arguments: argparse.Namespace) -> Options:
    """Errors: CaptureError."""
    words = ["--threads", str(arguments.threads)]
    for name in (*LISTS, *VALUES):
        value = getattr(arguments, name.replace("-", "_"))
        if value:
            words += [f"--{name}", *([value] if isinstance(value, str) else value)]
    return Options(
        captures=arguments.captures,
        policies=arguments.policy,
        layers=numbers(arguments.layers) if arguments.layers else None,
        seeds=numbers(arguments.seeds),
        varied=arguments.vary,
        words=words + ["--work"] * arguments.work,
    )


@contextlib.contextmanager
def client_of(arguments: argparse.Namespace) -> Iterator[Any]:
    """A client of the cluster that was asked for; a cluster started here ends with it. Errors: CaptureError."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise CaptureError(
            "needs the package distributed", "kvscope-sweep", "pip install 'dask[distributed]'"
        ) from error
    with contextlib.ExitStack() as stack:
        try:
            if arguments.scheduler:
                file = {"scheduler_file": arguments.scheduler} if os.path.exists(arguments.scheduler) else {}
                client = Client(**file or {"address": arguments.scheduler})
            elif arguments.cluster:
                module, _, name = arguments.cluster.rpartition(".")
                cluster = stack.enter_context(getattr(importlib.import_module(module), name)())
                cluster.scale(arguments.jobs)
                client = Client(cluster)
            else:
                local = LocalCluster(
                    arguments.processes, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
                )
                client = Client(stack.enter_context(local))
        except (ImportError, AttributeError, ValueError, OSError) as error:
            named = arguments.scheduler or arguments.cluster or "--processes"
            raise CaptureError(f"no cluster ({error})", named, "Give an address, or MODULE.CLASS") from error
        yield stack.enter_context(client)


def describe(plan: Plan, arguments: argparse.Namespace) -> str:
    """Tasks, bytes and hours; runs the first task here."""
    tasks = plan.tasks()
    seconds = tasks[0].run().seconds
    workers = arguments.jobs if arguments.cluster else arguments.processes
    at = "workers as fast as this machine" if arguments.cluster or arguments.scheduler else "processes"
    one = f"the first took {seconds:.1f} s here"
    hours = seconds * len(tasks) / 3600
    share = "" if arguments.scheduler else f", {hours / workers:.2f} h on {workers} {at}"
    return (
        f"{len(tasks)} tasks ({one}), {sum(task.reads for task in tasks) / 2**30:.2f} GiB to read,"
        f" {hours:.2f} h of one process{share}"
    )


def sweep(arguments: argparse.Namespace, command: str) -> None:
    """Runs the plan and writes the table. Errors: CaptureError."""
    from kvscope_capture.parquet import write_json, write_parquet
    from kvscope_sweep.sweep import Finished, run_plan

    write = {".parquet": write_parquet, ".json": write_json}.get(arguments.out.suffix)
    if not write:
        raise CaptureError("is neither .parquet nor .json", str(arguments.out), "Name such a file")
    check_output(arguments.out)
    plan = make_plan(find_program(), options_of(arguments))
    if arguments.dry_run:
        print(describe(plan, arguments))
        return
    finished = Finished(arguments.out)
    total, there = len(plan.tasks()), len(finished.read(plan))
    left = TimeLeft(total - there)
    with client_of(arguments) as client:
        done = run_plan(
            plan, client, finished, lambda count: show(f"{count} of {total} tasks{left.after(count - there)}")
        )
    write({"format": "kvscope-sweep", "version": 1, "command": command, "rows": plan.table(done)}, arguments.out)
    finished.remove()


def main(argv: list[str] | None = None) -> int:
    """Exit code 0, 2 with one sentence on stderr, or 130 and 143 when it was stopped."""
    words = sys.argv[1:] if argv is None else argv
    arguments = parser().parse_args(words)
    command = shlex.join(["kvscope-sweep", *words])

    def goes_on() -> str:
        parts = pathlib.Path(f"{arguments.out}.parts")
        return f"Finished tasks stay in {parts}; the same command goes on behind them" if parts.is_dir() else ""

    return run_command("kvscope-sweep", lambda: sweep(arguments, command), goes_on)


if __name__ == "__main__":
    sys.exit(main())
