"""Faults in a line that stays readable."""

from __future__ import annotations

from smokegeo.prepare.faults import SampleFault, describe


def test_the_faults_of_many_samples_stay_one_short_line():
    faults = {f"frame_{n:04}": SampleFault("no mask") for n in range(3000)}
    faults["odd"] = SampleFault("mask values", "0, 7")
    line = describe(faults, 4000)
    assert line.startswith("3001 of 4000 samples unusable: no mask: frame_0000, frame_0001, ")
    assert line.endswith("frame_0019 and 2980 more; mask values: odd (0, 7)")
