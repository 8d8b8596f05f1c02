import numpy as np
import pytest

from smokegeo.consensus import Agreement, merge_masks
from smokegeo.simulate import simulate_frame
from smokegeo.simulate.annotators import annotate, visible_smoke

#: Shares of the pixels marked by anyone that 3, 2 and 1 of the paper's annotators marked.
PAPER = {3: 0.5207, 2: 0.1414, 1: 0.3379}


def soft_disc(peak: float) -> np.ndarray:
    y, x = np.mgrid[:90, :90].astype(np.float32)
    return (peak * np.exp(-((y - 45) ** 2 + (x - 45) ** 2) / 400)).astype(np.float32)


def test_annotators_agree_on_the_core_and_not_on_the_edge():
    votes = merge_masks(annotate(soft_disc(0.9), np.random.default_rng(0))).votes
    assert votes[40:50, 40:50].min() == 3
    assert votes[:8].max() == 0
    assert {1, 2} <= set(np.unique(votes))


def test_hard_edges_leave_little_to_disagree_about():
    hard = np.zeros((120, 120), np.float32)
    hard[20:100, 20:100] = 0.9
    agreement = merge_masks(annotate(hard, np.random.default_rng(0))).agreement
    assert agreement.shares()[3] > 0.85


def test_thin_smoke_is_still_drawn_but_nothing_is_not():
    rng = np.random.default_rng(0)
    assert merge_masks(annotate(soft_disc(0.12), rng)).mask.any()
    assert not merge_masks(annotate(soft_disc(0.0), rng)).votes.any()
    assert not merge_masks(annotate(soft_disc(0.02), rng)).mask.any()


def test_smoke_that_changes_no_light_is_hardly_seen():
    opacity = np.full((40, 40), 0.6, np.float32)
    change = np.zeros((40, 40), np.float32)
    change[:, 20:] = 0.2
    seen = visible_smoke(opacity, change)
    assert seen[20, 35] == pytest.approx(0.6)
    assert seen[20, 3] < 0.2


@pytest.mark.slow
def test_agreement_over_many_frames_is_near_the_papers():
    total = Agreement((0, 0, 0))
    for index in range(100):
        frame = simulate_frame("hss", index, 0)
        total += Agreement(tuple(int((frame.votes == n).sum()) for n in (1, 2, 3)))
    for votes, share in total.shares().items():
        assert share == pytest.approx(PAPER[votes], abs=0.06)
