"""`smokegeo train`, `evaluate` and `models` from one to the next."""

from __future__ import annotations

import json

import pytest
from toy_models import save_toy

from smokegeo import MSS
from smokegeo.train import TrainConfig, read_config

#: The smallest training there is.
SMALL = ("--iterations", 2, "--batch-size", 2, "--crop", 16, "--accelerator", "cpu")


def test_a_model_is_trained_scored_and_described(run, make_dataset, tmp_path):
    root, out = make_dataset(10, "mss").root, tmp_path / "run"
    result = run(
        "train", "--dataset", "mss", "--root", root, "--out", out, "--model", "fcn", *SMALL
    )
    assert result.exit_code == 0, result.output
    model = out / "model.safetensors"
    assert f"wrote {model}" in result.output
    assert "Next: smokegeo evaluate" in result.output

    scored = run("evaluate", model, "--dataset", "mss", "--root", root, "--split", "train")
    assert scored.exit_code == 0, scored.output
    assert "total (8)" in scored.output
    plain = run("evaluate", model, "--dataset", "mss", "--root", root, "--json", "--quiet")
    assert json.loads(plain.stdout)["total"]["images"] == 1

    listed = run("models", "--folder", tmp_path)
    assert str(model) in listed.output
    shown = run("models", "show", model)
    assert "fcn" in shown.output
    assert "threshold" in shown.output
    assert json.loads(run("models", "show", model, "--json").stdout)["architecture"] == "fcn"

    again = run("train", "--dataset", "mss", "--root", root, "--out", out, *SMALL)
    assert again.exit_code == 2
    assert "--resume, --overwrite, or another --out" in again.output


def test_options_win_over_the_config_file_and_set_reaches_the_rest(run, make_dataset, tmp_path):
    root, out = make_dataset(10, "mss").root, tmp_path / "run"
    (tmp_path / "c.yaml").write_text("dataset: mss\nmodel: unet\nlr: 5e-1\niterations: 9\n")
    result = run(
        *("train", "--config", tmp_path / "c.yaml", "--root", root, "--out", out),
        *("--model", "mop", "--set", "power=0.5", "--set", "options.rescale=true", *SMALL),
    )
    assert result.exit_code == 0, result.output
    kept = TrainConfig.from_dict(read_config(out / "config.yaml"))
    other = run("train", "--out", out, "--resume", "--config", tmp_path / "c.yaml")
    assert other.exit_code == 2
    assert "model mop (now unet)" in other.output
    assert (kept.model, kept.lr, kept.iterations, kept.power) == ("mop", 0.5, 2, 0.5)
    assert kept.options == {"rescale": True}


@pytest.mark.parametrize(
    ("args", "code", "fact"),
    [
        (("--dataset", "fog"), 2, "dataset 'fog' is not one of"),
        (("--model", "vgg"), 2, "model 'vgg' is not one of"),
        (("--root", "nowhere"), 3, "smokegeo simulate hss --out nowhere"),
        (("--set", "speed"), 2, "write NAME=VALUE"),
        (("--set", "speed=1"), 2, "no option speed"),
        (("--set", "lr=fast"), 2, "lr 'fast' is not a number"),
        (("--set", "scale=["), 2, "is no value as YAML has them"),
        (("--set", "lr=1", "--set", "lr.low=1"), 2, "lr has no settings of its own"),
        (("--set", "options=[1]", "--variant", "accuracy"), 2, "options"),
        (("--lr", "-1"), 2, "lr -1.0 must be above 0"),
        (("--seed", "-1"), 2, "seed -1 must be 0 or more"),
        (("--precision", "16-true"), 2, "Use 16-mixed or 32-true"),
        (("--resume",), 2, "--resume needs --out"),
        (("--resume", "--out", "nowhere"), 3, "cannot be read"),
        (("--config", "missing.yaml"), 2, "does not exist"),
    ],
)
def test_refusals_are_one_line(run, args, code, fact, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("train", *args)
    assert result.exit_code == code
    assert fact in result.output
    assert result.output.count("Error:") == 1
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_config_that_is_no_mapping_is_refused(run, tmp_path):
    for number, text in enumerate(["- a\n- b\n", "a: [", "!!python/object:os.system {}"]):
        path = tmp_path / f"{number}.yaml"
        path.write_text(text)
        result = run("train", "--config", path)
        assert result.exit_code == 3
        assert result.output.count("Error:") == 1


def test_models_say_what_to_do_when_there_is_none(run, tmp_path, monkeypatch):
    monkeypatch.setattr("smokegeo.modelfile.bundled_models", dict)
    result = run("models", "--folder", tmp_path)
    assert result.exit_code == 0
    assert "smokegeo train" in result.output
    assert run("models", "show").exit_code == 2
    missing = run("models", "show", "fog")
    assert missing.exit_code == 4
    assert missing.output.count("Error:") == 1


def test_a_provisional_model_is_called_so(run, tmp_path):
    path = save_toy(tmp_path / "toy.safetensors", training={"provisional": "half done"})
    assert "Provisional." in run("models", "--folder", tmp_path).output
    assert "half done" in run("models", "show", path).output


def test_a_damaged_file_among_the_models_is_passed_over_with_a_warning(run, tmp_path):
    (tmp_path / "bad.safetensors").write_bytes(b"x" * 100)
    result = run("models", "--folder", tmp_path)
    assert result.exit_code == 0
    assert "Warning:" in result.output


def test_evaluate_scores_the_split_that_was_kept_from_the_training(run, make_dataset, tmp_path):
    """Dealt frame by frame, the test split would share scenes with the one trained on."""
    root, out = make_dataset(20, "mss", ship_splits=False).root, tmp_path / "run"
    result = run(
        *("train", "--dataset", "mss", "--root", root, "--out", out, "--model", "fcn"),
        *("--set", "by_scene=true", *SMALL),
    )
    assert result.exit_code == 0, result.output
    splits = {name: MSS(root, name, by_scene=True).records for name in ("train", "test")}
    scenes = [{record.scene for record in records} for records in splits.values()]
    assert not scenes[0] & scenes[1]
    for name, records in splits.items():
        scored = run(
            *("evaluate", out / "model.safetensors", "--dataset", "mss", "--root", root),
            *("--split", name, "--json", "--quiet"),
        )
        assert json.loads(scored.stdout)["total"]["images"] == len(records)


def test_scores_cannot_steer_the_terminal(run, make_dataset, tmp_path):
    root = make_dataset(10, "mss").root
    path = save_toy(tmp_path / "m.safetensors", "mss", name="\x1bc\rred")
    scored = run("evaluate", path, "--dataset", "mss", "--root", root)
    assert scored.exit_code == 0, scored.output
    assert "red on the test split" in scored.output
    assert not {"\x1b", "\r"} & set(scored.output)


@pytest.mark.parametrize("split", ["train", "nonsense"])
def test_evaluate_refuses_what_it_cannot_use(run, make_dataset, tmp_path, split):
    root = make_dataset(5, "mss").root
    (tmp_path / "m.ckpt").write_bytes(b"PK\x03\x04 zip")
    result = run(
        "evaluate", tmp_path / "m.ckpt", "--dataset", "mss", "--root", root, "--split", split
    )
    assert result.exit_code == (4 if split == "train" else 2)
    assert result.output.count("Error:") == 1


@pytest.mark.parametrize("saved", [True, False])
def test_ctrl_c_does_not_deny_what_is_left_to_resume(run, tmp_path, monkeypatch, saved):
    out = tmp_path / "run"

    def interrupted(*_: object, **__: object) -> None:
        (out / "checkpoints").mkdir(parents=True)
        if saved:
            (out / "checkpoints" / "last.ckpt").write_bytes(b"")
        raise KeyboardInterrupt

    monkeypatch.setattr("smokegeo.train.train", interrupted)
    result = run("train", "--out", out)
    assert result.exit_code == 130
    # With a checkpoint the training itself says how to go on.
    begin = "" if saved else "Interrupted before the first checkpoint; --overwrite begins anew.\n"
    assert result.output == begin
