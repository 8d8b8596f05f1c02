"""Views at a slant: the ground is a map that goes on where it ends."""

from __future__ import annotations

import numpy as np

from smokegeo.simulate.countryside import wrapped


def test_positions_wrap_around_a_map_just_below_its_edge_too():
    positions = np.array([-1e-6, 0.0, 639.99, 640.0, -640.5, 1281.2], np.float32)
    assert wrapped(positions, 640).tolist() == [639, 0, 639, 0, 639, 1]
