"""Samples are shown panel by panel."""

from __future__ import annotations

import torch

from smokegeo.datasets.plot import plot_sample
from smokegeo.sensors import sensor


def test_a_prediction_gets_its_own_panel():
    image, mask = torch.rand(4, 8, 8), torch.zeros(8, 8)
    figure = plot_sample(
        {"image": image, "mask": mask, "prediction": mask}, sensor("mss").bands, show_titles=True
    )
    assert [axis.get_title() for axis in figure.axes] == ["image", "mask", "prediction"]
