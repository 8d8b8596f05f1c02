"""At which sizes a network looks."""

from __future__ import annotations

import pytest

from smokegeo.looks import ONCE, Looks


def test_a_size_that_is_averaged_and_looked_closer_at_is_seen_once():
    assert Looks((1, 0.5, 2), (2, 3)).all == (1, 0.5, 2, 3)


@pytest.mark.parametrize(
    ("looks", "left"),
    [
        (ONCE, ONCE),
        (Looks((1, 0.5, 2)), Looks((1, 0.5))),
        (Looks((1, 0.5), (2,), 1.5), Looks((1, 0.5))),
        (Looks((2, 3)), ONCE),  # a scene must be seen at some size
    ],
)
def test_without_what_is_enlarged_a_scene_is_still_seen(looks, left):
    assert looks.without_enlarged() == left
