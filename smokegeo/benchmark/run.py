"""Run a comparison: train, score and measure each entry once, and go on where it stopped."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from smokegeo.benchmark.budget import steps_within, with_steps
from smokegeo.benchmark.machine import trained_on
from smokegeo.benchmark.measure import measure_apart
from smokegeo.benchmark.plan import Entry, Plan
from smokegeo.benchmark.results import Results, Run, write_results
from smokegeo.datasets import dataset_class
from smokegeo.datasets.layout import Layout, load_layout
from smokegeo.datasets.verify import require_sound
from smokegeo.errors import (
    OutputError,
    SmokegeoError,
    UsageError,
    deepest_cause,
    printable,
)
from smokegeo.evaluate import evaluate
from smokegeo.files import atomic_file, sha256
from smokegeo.modelfile import load_model
from smokegeo.models.baselines.catalog import METHODS, checked_options
from smokegeo.models.config import MoPConfig
from smokegeo.train import Machine, TrainConfig, train

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """One training of a comparison, and the folder that keeps it."""

    entry: Entry
    seed: int
    config: TrainConfig
    folder: Path
    bands: int
    options: Mapping[str, Any]


def benchmark(
    plan: Plan, out: Path, machine: Machine, known: Mapping[str, Run] | None = None
) -> Results:
    """Do what is not done yet; write the tables anew after each training.

    `known` are trainings that were done elsewhere, by their keys.
    """
    layout = load_layout(plan.root, plan.dataset)
    require_sound(layout, deep=True)
    reader = dataset_class(plan.dataset)
    frames = {s: len(reader(plan.root, s).records) for s in ("train", "val", "test")}
    failed: Exception | None = None
    with _alone(out):
        jobs = [
            _job(plan, entry, seed, layout, out, machine)
            for seed in plan.seeds  # all entries of a seed first: a whole table early
            for entry in plan.entries
        ]
        results = Results(plan, frames, bool(layout.facts.get("simulated")), [], {})
        for number, job in enumerate(jobs, start=1):
            label = f"{job.entry.name}, seed {job.seed} ({number} of {len(jobs)})"
            try:
                run = _known(job, known or {}, label) or _finished(job, plan, machine, label)
                results.runs.append(replace(run, cost=_cost(run, job, plan, out, label)))
            except (KeyboardInterrupt, SystemExit):
                log.info("interrupted in %s; the same command goes on from here", label)
                raise
            except Exception as error:
                # One method that fails, is not installed or needs more memory than there is must
                # not cost the others' hours.
                why = str(error) if isinstance(error, SmokegeoError) else _unexpected(error)
                log.warning("%s is left out: %s", label, why)
                log.debug("%s", label, exc_info=error)
                results.left_out[job.entry.name, job.seed] = why
                failed = error
            if results.runs:
                write_results(results, out)
    if failed is not None and not results.runs:
        raise failed
    return results


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Make the folder, and keep a second comparison out of it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{out}: cannot be made ({error.strerror}).") from error
    lock = FileLock(out / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise UsageError(f"{out}: another benchmark is at work there. Wait for it.") from None
    try:
        yield
    finally:
        lock.release()


def _unexpected(error: Exception) -> str:
    return f"{type(error).__name__}, {printable(deepest_cause(error))}"


def _job(plan: Plan, entry: Entry, seed: int, layout: Layout, out: Path, machine: Machine) -> Job:
    """Return a training and its folder, whose name holds a hash of what decides the result.

    That is the data, every setting, every option of the network with the defaults of today, and
    the method's revision. The device is not in it, nor are versions of other packages.
    """
    config, bands = plan.config(entry, seed), len(layout.bands)
    options = _all_options(config, bands)
    plain = {key: value for key, value in config.to_dict().items() if key != "root"}
    plain |= {"options": options, "revision": METHODS[entry.model].revision}
    if plan.budget.minutes is not None:
        plain |= {"iterations": None, "val_every": None, "minutes": plan.budget.minutes}
    if machine.precision != "32-true":
        plain |= {"precision": machine.precision}
    content = f"{_data_mark(layout.root)} {json.dumps(plain, sort_keys=True)}"
    folder = out / "runs" / f"{entry.name}-seed{seed}-{_mark(content)}"
    return Job(entry, seed, config, folder, bands, options)


def _mark(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def _all_options(config: TrainConfig, bands: int) -> dict[str, Any]:
    if config.model == "mop":
        return MoPConfig.from_dict({**config.options, "bands": bands}).to_dict()
    return checked_options(config.model, config.options)


def _data_mark(root: Path) -> str:
    """Return a hash of the data; of sizes and times of its files if it has no checksums.

    Not of `statistics`, which the first training writes there.
    """
    checksums = root / "checksums.sha256"
    if checksums.is_file():
        return sha256(checksums)
    kept = root / "statistics"
    files = sorted(p for p in root.rglob("*") if p.is_file() and kept not in p.parents)
    known = [(str(p.relative_to(root)), p.stat().st_size, p.stat().st_mtime_ns) for p in files]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()


def _known(job: Job, known: Mapping[str, Run], label: str) -> Run | None:
    """Return the result of a training that was done elsewhere and not here."""
    run = known.get(job.folder.name)
    if run is None or (job.folder / "result.json").is_file():
        return None
    log.info("%s: done elsewhere", label)
    return run


def _finished(job: Job, plan: Plan, machine: Machine, label: str) -> Run:
    """Return the result of a training that was done before, or do it."""
    kept = job.folder / "result.json"
    if kept.is_file():
        log.info("%s: done before", label)
        run = Run(**json.loads(kept.read_text("utf-8")))
    else:
        run = _scored(job, _trained(job, plan, machine, label), plan, machine)
        _write(kept, asdict(run))
        log.info("%s: F1 %.2f %%", label, 100 * (run.report["total"]["f1_image"] or 0.0))
    return run


def _trained(job: Job, plan: Plan, machine: Machine, label: str) -> Path:
    """Return the model file; go on with a training that was interrupted."""
    model_file = job.folder / "model.safetensors"
    if model_file.is_file():
        return model_file
    config = job.config
    if plan.budget.minutes is not None:
        steps = _kept(
            job.folder / "steps.json",
            lambda: steps_within(plan.budget.minutes or 0.0, config, machine),
        )
        config = with_steps(config, int(steps))
    resume = (job.folder / "checkpoints" / "last.ckpt").is_file()
    log.info("%s: %s for %d steps", label, "resuming" if resume else "training", config.iterations)
    spent = job.folder / "seconds.json"
    before = float(json.loads(spent.read_text("utf-8"))) if spent.is_file() else 0.0
    started = time.monotonic()
    try:
        return train(config, job.folder, machine, resume=resume)
    finally:
        if job.folder.is_dir():
            _write(spent, round(before + time.monotonic() - started, 1))


def _scored(job: Job, model_file: Path, plan: Plan, machine: Machine) -> Run:
    model = load_model(model_file)
    report = evaluate(model, dataset_class(plan.dataset)(plan.root, "test"))
    return Run(
        key=job.folder.name,
        name=job.entry.name,
        model=job.entry.model,
        variant=job.entry.variant,
        row=job.entry.row,
        seed=job.seed,
        iterations=int(model.card.training["config"]["iterations"]),
        minutes=float(json.loads((job.folder / "seconds.json").read_text("utf-8"))) / 60,
        parameters=sum(p.numel() for p in model.network().parameters()),
        threshold=model.card.threshold,
        date=datetime.now(UTC).date().isoformat(),
        machine=trained_on(machine),
        report=report.to_dict(),
    )


def _cost(run: Run, job: Job, plan: Plan, out: Path, label: str) -> Mapping[str, Any]:
    """Return what the network costs at the plan's size; empty if that fails.

    What was measured elsewhere comes along and says where; tables with costs of several machines
    tell them apart. Seeds cost the same, so the first is measured, once.
    """
    size_px = plan.speed_px
    if size_px and run.cost.get("size_px") == size_px:
        return run.cost
    if not size_px or job.seed != plan.seeds[0]:
        return {}

    def work() -> dict[str, Any]:
        log.info("%s: measuring time and memory", label)
        return asdict(measure_apart(job.entry.model, job.bands, job.options, size_px))

    revision = METHODS[job.entry.model].revision
    mark = _mark(json.dumps([job.bands, job.options, revision], sort_keys=True))
    try:
        return dict(_kept(out / "costs" / f"{job.entry.name}-{size_px}-{mark}.json", work))
    except Exception as error:
        # A network that needs more memory than there is must not cost its scores, too.
        log.warning("%s: time and memory could not be measured: %s", label, _unexpected(error))
        log.debug("%s", label, exc_info=error)
        return {}


def _kept(path: Path, work: Callable[[], Any]) -> Any:
    """Return what a file holds; do the work that fills it if there is none."""
    if not path.is_file():
        _write(path, work())
    return json.loads(path.read_text("utf-8"))


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as part:
        part.write_text(json.dumps(value, indent=2) + "\n", "utf-8")
