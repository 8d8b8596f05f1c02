"""Spread scenes, and rows of tiles of large scenes, over a Dask cluster.

A task sweeps some rows of tiles and returns finished lines; the model is loaded once per worker.
The lines are those of a single run, bit for bit, so it does not matter which machine made them. A
worker that dies costs its tasks a retry. Workers must see scenes and model under the same paths.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smokegeo.engine import Effort, Engine, cores
from smokegeo.errors import SmokegeoError, UsageError
from smokegeo.pipeline import (
    Prediction,
    Request,
    check_room,
    fingerprint,
    finish,
    open_checked,
    prepare,
)
from smokegeo.runs import Job, as_failure
from smokegeo.scene.layers import Box
from smokegeo.sweep import Plan, sweep
from smokegeo.work import Work, open_work
from smokegeo.writing.outputs import Outputs

if TYPE_CHECKING:
    from distributed import Client, Future

log = logging.getLogger(__name__)

#: Tiles in one task: enough that sending it costs nothing beside them.
_TILES_PER_TASK = 48
Lines = list[tuple[int, int, NDArray[np.uint8]]]
Damaged = frozenset[tuple[int, Box]]

_engines: dict[tuple[object, ...], Engine] = {}


@dataclass(frozen=True)
class _Started:
    """A scene on its way: what decides it, where its map grows, and how to let go of it."""

    job: Job
    plan: Plan
    work: Work
    threshold: float
    effort: Effort
    stack: ExitStack

    @property
    def tasks(self) -> list[tuple[int, int]]:
        """Rows of tiles still to do, in portions."""
        grid = self.plan.grid
        step = max(1, round(_TILES_PER_TASK / len(grid.columns)))
        last = len(grid.rows)
        return [(r, min(last, r + step)) for r in range(self.work.rows_done, last, step)]


def predict_on_cluster(
    jobs: Sequence[Job], request: Request, address: str
) -> Iterator[tuple[Job, Prediction | SmokegeoError]]:
    """Yield the result of each scene as it is finished, in order."""
    with _client(address) as client:
        yield from _run(client, jobs, request)


def _run(
    client: Client, jobs: Sequence[Job], request: Request
) -> Iterator[tuple[Job, Prediction | SmokegeoError]]:
    """Keep the cluster busy with the tasks of the next scenes while lines come in."""
    waiting = deque(jobs)
    running: deque[tuple[_Started, deque[Future]]] = deque()
    broken: list[tuple[Job, SmokegeoError]] = []
    with ExitStack() as everything:
        while waiting or running:
            ready = 2 * max(1, len(client.nthreads()))
            while waiting and sum(len(futures) for _, futures in running) < ready:
                job = waiting.popleft()
                try:
                    started = _start(job, request, everything)
                except Exception as error:
                    broken.append((job, as_failure(job[0], error)))
                    continue
                running.append((started, _submit(client, started)))
            while broken and not running:
                yield broken.pop(0)
            if running:
                started, futures = running.popleft()
                yield started.job, _finish(started, futures, request)
        yield from broken


def _start(job: Job, request: Request, everything: ExitStack) -> _Started:
    scene_path, outputs = job
    scene, warnings = open_checked(scene_path, outputs, request)
    effort = replace(request.effort, threads=request.effort.threads or 1)
    ready = prepare(scene, replace(request, effort=effort), warnings)
    check_room(ready.plan.scene, outputs.files)
    stack = everything.enter_context(ExitStack())
    work = stack.enter_context(
        open_work(
            _anchor(outputs),
            ready.plan.scene.width,
            ready.plan.scene.height,
            fingerprint(ready),
            resume=request.resume,
        )
    )
    log.info("%s: %d tiles on the cluster", scene.name, len(ready.plan.grid))
    return _Started(job, ready.plan, work, ready.threshold, effort, stack)


def _submit(client: Client, started: _Started) -> deque[Future]:
    plan = client.scatter(started.plan, broadcast=True, hash=False)
    return deque(
        client.submit(_sweep_rows, plan, started.effort, first, last, pure=False, retries=2)
        for first, last in started.tasks
    )


def _finish(
    started: _Started, futures: deque[Future], request: Request
) -> Prediction | SmokegeoError:
    """Collect the lines of a scene in order, then draw and write as a single run does."""
    scene_path, outputs = started.job
    try:
        with started.stack:
            while futures:
                swept, damaged = futures.popleft().result()
                for row, start, lines in swept:
                    started.work.raster.write(start, lines)
                    started.work.save(row + 1, damaged)
            return finish(started.work, started.plan, started.threshold, outputs, request)
    except Exception as error:
        return as_failure(scene_path, error)
    finally:
        for future in futures:
            future.cancel()


def _sweep_rows(plan: Plan, effort: Effort, first: int, last: int) -> tuple[Lines, Damaged]:
    """On a worker: sweep some rows of tiles; say which blocks it could not read so far."""
    lines = list(sweep(plan, _engine(plan, effort), first, last))
    return lines, plan.scene.damaged


def _engine(plan: Plan, effort: Effort) -> Engine:
    """Return the worker's engine for a model, loaded once."""
    available = plan.recipe.available
    key = (str(plan.fit.path), plan.fit.card.sha256, available, effort, plan.reduction)
    if key not in _engines:
        _engines.clear()
        _engines[key] = Engine(plan.fit, effort.resolved(), available, plan.reduction)
    return _engines[key]


def _anchor(outputs: Outputs) -> Path:
    if outputs.polygons is None:
        raise UsageError("--dask needs an output to write.")
    return outputs.polygons


@contextmanager
def _client(address: str) -> Iterator[Client]:
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise UsageError(
            "dask.distributed is not installed, and --dask needs it. "
            "Run `pip install smokegeo[dask]`."
        ) from error
    logging.getLogger("distributed").setLevel(logging.ERROR)
    with ExitStack() as stack:
        if address == "local":
            options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": None}
            cluster = stack.enter_context(LocalCluster(n_workers=cores(), **options))
            yield stack.enter_context(Client(cluster))
            return
        try:
            client = stack.enter_context(Client(address, timeout=10))
        except (OSError, ValueError) as error:
            raise UsageError(
                f"--dask {address}: no Dask scheduler answers there. "
                "Give tcp://HOST:8786, or `local`."
            ) from error
        yield client
