"""`smokegeo benchmark`: the paper's comparison on one's own data."""

from __future__ import annotations

from pathlib import Path

import click

from smokegeo.cli.main import command


@command()
@click.option("--dataset", default="hss", help="Kind of dataset: hss, mss or satellite.")
@click.option(
    "--root",
    type=click.Path(path_type=Path),
    help="Prepared dataset.  [default: datasets/KIND/data]",
)
@click.option(
    "--models",
    default="all",
    help="Which methods, separated by commas: mop, pspnet, deeplabv3+, trans-bvm, ocrnet, segnext, "
    "mask2former, segformer, fosp, protoseg; `ablation` for the rows of the ablation table (of "
    "the larger size that is asked for), `all` for everything in the paper's tables.",
)
@click.option(
    "--variant",
    "variants",
    type=click.Choice(["realtime", "accuracy", "both"]),
    default="both",
    help="Which of the two main tables.",
)
@click.option(
    "--budget",
    default="paper",
    help="What each method gets: `paper` (40,000 steps of 4 crops of 512 pixels), or some of "
    "iterations=N or minutes=N, batch=N, crop=PX, lr=X, warmup=N, momentum=X.",
)
@click.option("--seeds", default="0", help="Seeds, separated by commas; each trains everything.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for trainings and tables; the same command goes on in it.  [default: "
    "runs/benchmark-KIND]",
)
@click.option(
    "--results",
    type=click.Path(dir_okay=False, path_type=Path),
    multiple=True,
    help="A results.json of the same comparison from elsewhere: what it has is not trained again. "
    "May be given several times.",
)
@click.option(
    "--speed-size",
    "speed_px",
    type=click.IntRange(min=0),
    default=512,
    help="Side of the image that time and memory are measured on; 0 leaves that out.",
)
@click.option("--accelerator", default="auto", help="cpu, gpu, mps ... as in Lightning.")
@click.option("--precision", default="32-true", help="16-mixed or bf16-mixed on GPUs.")
@click.option("--workers", type=click.IntRange(min=0), default=0, help="Loader processes.")
def benchmark(
    dataset: str,
    root: Path | None,
    models: str,
    variants: str,
    budget: str,
    seeds: str,
    out: Path | None,
    results: tuple[Path, ...],
    speed_px: int,
    accelerator: str,
    precision: str,
    workers: int,
) -> None:
    """Train and score the paper's methods on a dataset, all under one budget.

    Writes into OUT, anew after each training: benchmark.md and benchmark.csv with the paper's
    tables (small, medium, large, total; F1 and mIoU), parameters, FLOPs, latency and memory, and
    benchmark.png, accuracy against latency. Interrupt it at will: the same command keeps what is
    finished and goes on with the training it was in. A method that fails is left out, and said.

    The paper's budget takes days on a graphics card and months on a CPU. With a smaller one, give
    a higher learning rate and a lower prototype momentum, as in the first example.

    \b
    Examples:
      smokegeo benchmark --root smoke-hss --out bench --variant realtime \\
          --budget iterations=600,crop=96,lr=5e-4,warmup=60,momentum=0.99
      smokegeo benchmark --dataset mss --root smoke-mss --out bench-mss --models mop,segformer \\
          --budget minutes=30,crop=128,lr=5e-4,momentum=0.99 --seeds 0,1,2
    """
    from smokegeo.benchmark.budget import Budget
    from smokegeo.benchmark.plan import Plan, choose
    from smokegeo.benchmark.results import read_runs
    from smokegeo.benchmark.run import benchmark as run
    from smokegeo.benchmark.tables import markdown
    from smokegeo.datasets import dataset_class, default_root
    from smokegeo.train import Machine

    dataset_class(dataset)  # refuses what it does not know
    sizes = ("realtime", "accuracy") if variants == "both" else (variants,)
    plan = Plan(
        dataset,
        root or default_root(dataset),
        choose(_words(models), sizes),
        Budget.parse(budget),
        _numbers(seeds),
        speed_px,
    )
    out = out or Path("runs") / f"benchmark-{dataset}"
    machine = Machine(accelerator, "1", "auto", precision, workers)
    known = {key: done for path in results for key, done in read_runs(path).items()}
    try:
        found = run(plan, out, machine, known)
    except KeyboardInterrupt:
        click.echo(f"Interrupted. The same command goes on in {out}.", err=True)
        raise click.exceptions.Exit(130) from None
    click.echo(markdown(found))
    figure = ", .png" if speed_px else ""
    click.echo(f"wrote {out / 'benchmark.md'} and, beside it, .csv{figure} and results.json")


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _numbers(text: str) -> tuple[int, ...]:
    from smokegeo.errors import UsageError

    words = _words(text)
    if not all(word.isdecimal() for word in words):
        raise UsageError(f"--seeds {text}: write whole numbers from 0 on, 0,1,2 for example.")
    return tuple(dict.fromkeys(map(int, words)))
