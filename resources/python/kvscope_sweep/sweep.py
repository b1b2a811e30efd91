"""Runs the tasks of a plan on a Dask cluster and keeps what is finished beside the table."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
from collections.abc import Callable
from typing import Any

from kvscope_capture.errors import CaptureError
from kvscope_sweep.plan import Done, Plan, Task

RETRIES = 2  # of a task whose program was ended by a signal; if a worker dies, Dask repeats its tasks


class Finished:
    """The folder OUT.parts: a file for every task that is finished, whole or not there."""

    def __init__(self, out: pathlib.Path) -> None:
        """Nothing is written before the first task is finished."""
        self.folder = out.with_name(out.name + ".parts")

    def read(self, plan: Plan) -> dict[str, Done]:
        """Tasks of the plan that an earlier, stopped sweep has finished; a file that cannot be read is not there."""
        found: dict[str, Done] = {}
        for task in plan.tasks():
            with contextlib.suppress(OSError, ValueError, TypeError):
                found[task.key] = Done(**json.loads(self._path(task).read_text()))
        return found

    def write(self, task: Task, done: Done) -> None:
        """Errors: CaptureError."""
        path = self._path(task)
        try:
            self.folder.mkdir(exist_ok=True)
            temporary = path.with_suffix(".tmp")
            temporary.write_text(json.dumps(dataclasses.asdict(done)))
            os.replace(temporary, path)
        except OSError as error:
            raise CaptureError(
                f"cannot be written ({error.strerror})", str(path), "Free space or write elsewhere"
            ) from error

    def remove(self) -> None:
        """After the table has been written."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, task: Task) -> pathlib.Path:
        return self.folder / f"{task.key}.json"


def attempt(task: Task) -> Done | CaptureError:
    """What a worker does. An error that a retry would not mend is returned: raised, Dask would log its traceback."""
    try:
        return task.run()
    except CaptureError as error:
        return error


def run_plan(plan: Plan, client: Any, finished: Finished, progress: Callable[[int], None]) -> dict[str, Done]:
    """Runs what is not finished on `client` (distributed.Client of any cluster); `progress` counts finished tasks.

    The first error (CaptureError) ends the sweep; what is finished stays.
    """
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    done = finished.read(plan)
    progress(len(done))
    missing = {task.key: task for task in plan.tasks() if task.key not in done}
    futures = [client.submit(attempt, task, key=task.key, retries=RETRIES, pure=False) for task in missing.values()]
    try:
        for future in as_completed(futures):
            try:
                result = future.result()
            except (KilledWorker, RuntimeError) as error:
                words = " ".join(missing[future.key].words)
                raise CaptureError(
                    f"ended again and again ({error})", f"kvscope {words}", "Give it more memory"
                ) from error
            if isinstance(result, CaptureError):
                raise result
            done[future.key] = result
            finished.write(missing[future.key], result)
            progress(len(done))
    finally:
        client.cancel(futures)
    return done
