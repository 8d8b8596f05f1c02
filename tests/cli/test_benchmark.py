"""`smokegeo benchmark`: from the command line to the tables."""

from __future__ import annotations

import pytest


def test_a_comparison_is_run_and_printed(run, make_dataset, tmp_path):
    root, out = make_dataset(10, "mss").root, tmp_path / "bench"
    args = (
        *("benchmark", "--dataset", "mss", "--root", root, "--out", out, "--speed-size", 0),
        *("--models", "segformer", "--variant", "realtime", "--accelerator", "cpu"),
        *("--budget", "iterations=1,batch=2,crop=32"),
    )
    result = run(*args)
    assert result.exit_code == 0, result.output
    assert "| SegFormer |" in result.stdout
    assert "What not to conclude" in result.stdout
    assert f"wrote {out / 'benchmark.md'}" in result.stdout
    assert {"benchmark.md", "benchmark.csv", "results.json"} <= {p.name for p in out.iterdir()}


@pytest.mark.parametrize(
    ("args", "code", "fact"),
    [
        (("--dataset", "fog"), 2, "dataset 'fog' is not one of"),
        (("--models", "vgg"), 2, "'vgg' is not one of pspnet"),
        (("--models", ","), 2, "nothing to compare"),
        (("--budget", "soon"), 2, "'soon' is not understood"),
        (("--seeds", "one"), 2, "--seeds one: write whole numbers"),
        (("--root", "nowhere"), 3, "smokegeo simulate hss --out nowhere"),
    ],
)
def test_refusals_are_one_line_and_leave_nothing(run, args, code, fact, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("benchmark", "--out", "bench", *args)
    assert result.exit_code == code
    assert fact in result.output
    assert result.output.count("Error:") == 1
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_says_how_to_go_on(run, tmp_path, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("smokegeo.benchmark.run.benchmark", interrupted)
    result = run("benchmark", "--root", tmp_path, "--out", tmp_path / "bench")
    assert result.exit_code == 130
    assert result.output == f"Interrupted. The same command goes on in {tmp_path / 'bench'}.\n"
    result = run("benchmark", "--dataset", "mss", "--root", tmp_path)
    assert "goes on in runs/benchmark-mss." in result.output
