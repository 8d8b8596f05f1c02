"""`smokegeo check` finds everything at once."""

from __future__ import annotations

import json


def test_a_sound_dataset_is_described(run, make_dataset):
    layout = make_dataset(10)
    result = run("check", layout.root)
    assert result.exit_code == 0
    assert "10 hss frames of 25 bands from 4 scenes (train 6, val 2, test 2)" in result.output
    assert "No fault found" in result.output


def test_all_faults_come_in_one_line_and_in_json(run, make_dataset):
    layout = make_dataset(5)
    layout.mask("frame_001").unlink()
    layout.image("frame_003").write_bytes(b"II*\0 nothing")
    result = run("check", layout.root, "--quiet")
    assert result.exit_code == 3
    assert result.output.count("Error:") == 1
    assert "no mask: frame_001" in result.output
    assert "unreadable: frame_003" in result.output
    faults = json.loads(run("check", layout.root, "--quiet", "--json").stdout)["faults"]
    assert {"frame_001", "frame_003"} <= {fault["sample"] for fault in faults}


def test_a_folder_without_dataset_says_what_to_do(run, tmp_path):
    result = run("check", tmp_path)
    assert result.exit_code == 3
    assert "smokegeo prepare" in result.output
    assert "smokegeo simulate" in result.output
