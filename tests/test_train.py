"""Training: from a dataset to a model file, interrupted and resumed, and when it goes wrong."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
import torch

from smokegeo import task as task_module
from smokegeo import train as train_module
from smokegeo.errors import InputError, Terminated, UsageError
from smokegeo.modelfile import load_model
from smokegeo.task import MoPSegmentationTask, TrainingDivergedError
from smokegeo.train import Machine, ProgressLines, TrainConfig, read_config, train

CPU = Machine(accelerator="cpu", devices="1")
#: The smallest network there is, for tests that only need one to run.
TINY = {
    "iterations": 4,
    "batch_size": 2,
    "crop_px": 32,
    "val_every": 2,
    "dataset": "mss",
    "model": "fcn",
}


@pytest.fixture
def mss(make_dataset):
    return make_dataset(10, "mss")


def config(layout, **settings):
    return TrainConfig.from_dict({**TINY, "root": str(layout.root), **settings})


def test_it_ends_with_a_model_file_whose_card_tells_everything(mss, tmp_path):
    path = train(config(mss, model="mop"), tmp_path / "run", CPU)
    model = load_model(path)
    card = model.card
    assert card.architecture == "mop"
    assert card.bands == mss.bands
    assert card.statistics.names == mss.bands.names
    assert card.options["variant"] == "realtime"
    assert card.training["config"]["iterations"] == 4
    assert str(tmp_path) not in json.dumps(card.training)  # where the data lie is nobody's business
    assert card.training["frames"] == 8
    assert card.input["dtype"] == "uint16"
    assert 0 < card.threshold < 1
    assert card.metrics["validation"]["total"]["images"] == 1
    logits = model.for_inference()(torch.zeros(1, 4, 40, 40))
    assert logits.shape == (1, 2, 40, 40)


def test_it_writes_logs_a_config_and_two_checkpoints(mss, tmp_path):
    out = tmp_path / "run"
    train(config(mss), out, CPU)
    assert {path.name for path in (out / "checkpoints").iterdir()} == {"best.ckpt", "last.ckpt"}
    with (out / "logs" / "0" / "metrics.csv").open() as handle:
        rows = list(csv.DictReader(handle))
    assert {"train_loss", "val_f1", "val_iou"} <= set(rows[0])
    assert TrainConfig.from_dict(read_config(out / "config.yaml")) == config(mss)


@pytest.mark.parametrize("model", ["unet", "segformer"])
def test_a_baseline_of_torchgeo_trains_the_same_way(mss, tmp_path, model):
    path = train(config(mss, model=model, iterations=2), tmp_path / "run", CPU)
    loaded = load_model(path)
    assert loaded.card.architecture == model
    assert loaded.for_inference()(torch.zeros(1, 4, 33, 50)).shape == (1, 2, 33, 50)


@pytest.mark.slow
def test_resuming_continues_bit_for_bit(mss, tmp_path, monkeypatch):
    settings = {"model": "mop", "iterations": 20, "val_every": 7, "band_dropout": 0.3}
    straight = train(config(mss, **settings), tmp_path / "straight", CPU)

    def stop_at_ten(self, *args):
        if self.global_step == 10:
            raise Terminated

    with monkeypatch.context() as patch:
        patch.setattr(MoPSegmentationTask, "on_train_batch_end", stop_at_ten)
        with pytest.raises(Terminated):
            train(config(mss, **settings), tmp_path / "broken", CPU)
    assert not (tmp_path / "broken" / "model.safetensors").exists()
    # Another state of the global generator must not matter.
    torch.manual_seed(99)
    resumed = train(config(mss, **settings), tmp_path / "broken", CPU, resume=True)
    last = [
        torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)
        for run in (tmp_path / "straight", tmp_path / "broken")
    ]
    assert last[0]["global_step"] == last[1]["global_step"] == 20
    for name, value in last[0]["state_dict"].items():
        assert torch.equal(value, last[1]["state_dict"][name]), name
    one, two = load_model(straight), load_model(resumed)
    assert one.card.sha256 == two.card.sha256
    assert one.card.threshold == two.card.threshold


def ask(number):
    """Return a hook that sends this process a signal once."""
    sent = []

    def hook(*args):
        if not sent:
            sent.append(1)
            signal.raise_signal(number)

    return hook


def fail(*args):
    raise Terminated


def same(one, two):
    """Compare the last checkpoints of two runs, and their model files."""
    last = [torch.load(r / "checkpoints" / "last.ckpt", weights_only=True) for r in (one, two)]
    assert last[0]["global_step"] == last[1]["global_step"]
    for name, value in last[0]["state_dict"].items():
        assert torch.equal(value, last[1]["state_dict"][name]), name
    cards = [load_model(run / "model.safetensors").card for run in (one, two)]
    assert cards[0].sha256 == cards[1].sha256
    assert cards[0].metrics == cards[1].metrics


def saved_step(run):
    state = torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)
    return state["global_step"]


@pytest.mark.parametrize(
    ("stop", "error", "step"),
    [
        # The signal waits for the step to end; an error inside it cannot, and costs the step.
        (ask(signal.SIGINT), KeyboardInterrupt, 3),
        (fail, Terminated, 2),
    ],
)
def test_a_stop_inside_a_step_is_resumed_bit_for_bit(mss, tmp_path, monkeypatch, stop, error, step):
    settings, broken = {"model": "mop", "val_every": 2}, tmp_path / "broken"
    train(config(mss, **settings), tmp_path / "straight", CPU)
    with monkeypatch.context() as patch:
        patch.setattr(
            MoPSegmentationTask,
            "on_after_backward",
            lambda self: stop() if self.global_step == 2 else None,
        )
        with pytest.raises(error):
            train(config(mss, **settings), broken, CPU)
    assert saved_step(broken) == step
    train(config(mss, **settings), broken, CPU, resume=True)
    same(tmp_path / "straight", broken)


@pytest.mark.parametrize(("stop", "step"), [(fail, 2), (ask(signal.SIGINT), 4)])
def test_a_validation_that_is_interrupted_is_not_lost(mss, tmp_path, monkeypatch, stop, step):
    run, scores = tmp_path / "run", {2: 0.2, 4: 0.9, 6: 0.1}

    def best_at_four(self, split):
        self.log("val_f1", scores[self.trainer.global_step])
        return task_module.report([]), 0.5

    monkeypatch.setattr(MoPSegmentationTask, "_report", best_at_four)
    with monkeypatch.context() as patch:
        patch.setattr(
            MoPSegmentationTask,
            "on_validation_batch_start",
            lambda self, *_: stop() if self.global_step == 4 else None,
        )
        with pytest.raises((KeyboardInterrupt, Terminated)):
            train(config(mss, iterations=6), run, CPU)
    assert saved_step(run) == step
    train(config(mss, iterations=6), run, CPU, resume=True)
    best = torch.load(run / "checkpoints" / "best.ckpt", weights_only=True)
    assert best["global_step"] == 4
    assert saved_step(run) == 6


def test_a_second_signal_stops_at_once_and_leaves_the_checkpoint(mss, tmp_path, monkeypatch):
    before = signal.getsignal(signal.SIGINT)
    done = []

    def insist(self):
        if self.global_step == 3:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            done.append("never")

    monkeypatch.setattr(MoPSegmentationTask, "on_after_backward", insist)
    with pytest.raises(KeyboardInterrupt):
        train(config(mss), tmp_path / "run", CPU)
    assert not done
    assert saved_step(tmp_path / "run") == 2
    assert signal.getsignal(signal.SIGINT) is before


def test_a_loss_that_is_no_number_stops_with_the_frames_and_keeps_the_last_checkpoint(
    mss, tmp_path, monkeypatch
):
    calls = []
    real = task_module.segmentation_loss

    def broken(logits, labels):
        calls.append(1)
        return real(logits, labels) * (float("nan") if len(calls) == 4 else 1)

    monkeypatch.setattr(task_module, "segmentation_loss", broken)
    with pytest.raises(TrainingDivergedError) as caught:
        train(config(mss, iterations=8), tmp_path / "run", CPU)
    text = str(caught.value)
    assert "nan at step 3 on frames frame_0" in text
    assert "last good checkpoint is" in text
    state = torch.load(tmp_path / "run" / "checkpoints" / "last.ckpt", weights_only=True)
    assert all(torch.isfinite(v).all() for v in state["state_dict"].values())
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_faulty_samples_are_all_named_before_the_first_step(mss, tmp_path):
    ids = mss.split_ids("train")
    mss.mask(ids[0]).unlink()
    mss.image(ids[1]).write_bytes(mss.image(ids[1]).read_bytes()[:600])
    with pytest.raises(InputError) as caught:
        train(config(mss), tmp_path / "run", CPU)
    assert ids[0] in str(caught.value)
    assert ids[1] in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_nothing_to_resume_is_said(mss, tmp_path):
    with pytest.raises(InputError, match="nothing to resume"):
        train(config(mss), tmp_path / "run", CPU, resume=True)


def scored(monkeypatch, scores):
    """Let validations find these scores, by their steps."""

    def score(self, split):
        self.log("val_f1", scores[self.trainer.global_step])
        return task_module.report([]), 0.5

    monkeypatch.setattr(MoPSegmentationTask, "_report", score)


@pytest.fixture
def half_done(mss, tmp_path, monkeypatch):
    """A training of four steps that was best after two."""
    scored(monkeypatch, {2: 0.9, 4: 0.1, 6: 0.2, 8: 0.3})
    train(config(mss), tmp_path / "run", CPU)
    return tmp_path / "run"


def test_a_folder_that_was_moved_still_knows_its_best_weights(mss, half_done):
    before = load_model(half_done / "model.safetensors").card.sha256
    moved = half_done.rename(half_done.with_name("moved"))
    train(config(mss, iterations=6), moved, CPU, resume=True)
    best = torch.load(moved / "checkpoints" / "best.ckpt", weights_only=True)
    assert best["global_step"] == 2
    assert load_model(moved / "model.safetensors").card.sha256 == before
    assert not half_done.exists()


def test_without_its_best_checkpoint_a_training_goes_on_with_what_it_has(mss, half_done):
    (half_done / "checkpoints" / "best.ckpt").unlink()
    train(config(mss, iterations=6), half_done, CPU, resume=True)
    best = torch.load(half_done / "checkpoints" / "best.ckpt", weights_only=True)
    assert best["global_step"] == 6


def test_a_new_patience_counts_after_resuming(mss, tmp_path, monkeypatch):
    scored(monkeypatch, {2: 0.9, 4: 0.1, 6: 0.2, 8: 0.3})
    train(config(mss, patience=1, iterations=8), tmp_path / "run", CPU)
    assert saved_step(tmp_path / "run") == 4
    train(config(mss, patience=3, iterations=8), tmp_path / "run", CPU, resume=True)
    assert saved_step(tmp_path / "run") == 8


def test_starting_anew_leaves_nothing_of_before_to_resume(mss, half_done, monkeypatch):
    monkeypatch.setattr(MoPSegmentationTask, "on_after_backward", fail)
    with pytest.raises(Terminated):
        train(config(mss, lr=0.5), half_done, CPU)
    assert list((half_done / "checkpoints").iterdir()) == []
    assert not (half_done / "model.safetensors").exists()
    with pytest.raises(InputError, match="nothing to resume"):
        train(config(mss, lr=0.5), half_done, CPU, resume=True)


@pytest.mark.parametrize(
    ("settings", "fact"),
    [
        ({"lr": 0.5}, r"trained with lr 6e-05 \(now 0.5\)"),
        ({"model": "unet", "seed": 3}, r"model fcn \(now unet\), seed 0 \(now 3\)"),
        ({"iterations": 3}, "at step 4 already; iterations 3 must not be fewer"),
    ],
)
def test_resuming_refuses_other_settings_and_changes_nothing(mss, half_done, settings, fact):
    def files():
        return {p: p.read_bytes() for p in half_done.rglob("*") if p.is_file()}

    before = files()
    with pytest.raises(UsageError, match=fact):
        train(config(mss, **settings), half_done, CPU, resume=True)
    assert files() == before


def test_a_damaged_checkpoint_is_said_to_be_one(mss, half_done):
    last = half_done / "checkpoints" / "last.ckpt"
    last.write_bytes(last.read_bytes()[:5000])
    with pytest.raises(InputError, match=r"last\.ckpt is damaged"):
        train(config(mss), half_done, CPU, resume=True)


@pytest.fixture
def told(monkeypatch):
    """What a training says."""
    lines = []
    monkeypatch.setattr(train_module.log, "info", lambda text, *facts: lines.append(text % facts))
    return lines


def test_each_validation_score_is_told_once(mss, tmp_path, monkeypatch, told):
    scored(monkeypatch, {2: 0.9, 4: 0.1})
    train(config(mss), tmp_path / "run", CPU)
    assert told == [
        "step 2: validation F1 0.9000",
        "step 4: validation F1 0.1000",
        "the weights of step 2 are the best, with validation F1 0.9000",
    ]


@pytest.mark.parametrize(
    ("seconds_a_step", "left"),
    [(0.1, "3 min left"), (10.0, "6 h left"), (719.4, "17 days left")],
)
def test_the_time_left_is_told_in_fitting_units(monkeypatch, told, seconds_a_step, left):
    clock = iter([0.0, 1000 * seconds_a_step])
    monkeypatch.setattr(train_module, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    trainer = SimpleNamespace(global_step=0, max_steps=3000, callback_metrics={})
    lines = ProgressLines()
    lines.on_train_start(trainer, None)
    trainer.global_step = 1000
    lines.on_train_batch_end(trainer)
    assert left in told[0]


@pytest.mark.parametrize(
    ("machine", "fact"),
    [
        (Machine(accelerator="tpu"), "torch_xla"),
        (Machine(accelerator="cpu", devices="0"), "devices"),
        (Machine(accelerator="cpu", strategy="foo"), "invalid strategy name"),
        (Machine(accelerator="cpu", precision="foo"), "Precision 'foo' is invalid"),
    ],
)
def test_a_machine_that_cannot_be_is_refused_before_anything_is_written(
    mss, tmp_path, machine, fact
):
    with pytest.raises(UsageError, match=fact) as caught:
        train(config(mss), tmp_path / "run", machine)
    assert "Check --accelerator" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("precision", ["16-true", "bf16-true"])
def test_weights_in_half_are_refused_with_what_to_use(precision):
    with pytest.raises(UsageError, match=f"Use {precision[:-5]}-mixed or 32-true"):
        Machine(precision=precision)


def test_a_training_in_mixed_precision_is_validated(mss, tmp_path):
    machine = Machine(accelerator="cpu", devices="1", precision="bf16-mixed")
    path = train(config(mss, iterations=1), tmp_path / "run", machine)
    assert load_model(path).card.metrics["validation"]["total"]["images"] == 1


def test_a_network_that_cannot_be_built_is_refused_before_anything_is_written(
    mss, tmp_path, monkeypatch
):
    def refuse(*args):
        raise RuntimeError("no such\nencoder")

    monkeypatch.setattr(task_module, "build_network", refuse)
    with pytest.raises(
        UsageError, match=r"fcn cannot be built with options .*no such encoder"
    ) as caught:
        train(config(mss, options={"width": 3}), tmp_path / "run", CPU)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_two_processes_train_together(make_dataset, tmp_path):
    mss, out = make_dataset(20, "mss"), tmp_path / "run"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "smokegeo", "train", "--dataset", "mss", "--root", mss.root),
            *("--out", out, "--iterations", "3", "--batch-size", "1", "--crop", "32"),
            *("--model", "mop", "--accelerator", "cpu", "--devices", "2", "--strategy", "ddp"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert load_model(out / "model.safetensors").card.metrics["validation"]["total"]["images"] == 2


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_save_a_checkpoint_and_have_their_exit_codes(mss, tmp_path, number, code):
    out = tmp_path / "run"
    command = [
        *(sys.executable, "-m", "smokegeo", "train", "--dataset", "mss", "--root", mss.root),
        *("--out", out, "--iterations", "100000", "--batch-size", "1", "--crop", "32"),
        *("--accelerator", "cpu", "--set", "val_every=40", "--model", "fcn", "--workers", "1"),
    ]
    with (tmp_path / "told").open("w") as told:
        process = subprocess.Popen(command, stderr=told, start_new_session=True)
    last = out / "checkpoints" / "last.ckpt"
    for _ in range(1200):
        if last.exists():
            break
        time.sleep(0.1)
    before = last.stat().st_mtime_ns
    # To the loader processes, too: that is what a terminal and a scheduler do.
    os.killpg(process.pid, number)
    try:
        found = process.wait(timeout=120)
    finally:
        process.kill()  # deaf to it, it would train on for hours
    assert found == code, (tmp_path / "told").read_text()
    text = (tmp_path / "told").read_text()
    assert text.count("stopping after this step") == 1
    assert last.stat().st_mtime_ns > before, text
    assert not (out / "model.safetensors").exists()
