"""Pictures of samples: colour composites with masks and predictions beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from smokegeo.bands import BandSet
from smokegeo.composite import composite

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_sample(
    sample: dict[str, Any], bands: BandSet, *, show_titles: bool = True, suptitle: str | None = None
) -> Figure:
    """Draw the composite, the mask and, if the sample has one, the prediction, side by side."""
    import matplotlib.pyplot as plt

    panels = [key for key in ("mask", "prediction") if key in sample]
    figure, axes = plt.subplots(
        1, 1 + len(panels), figsize=(5 * (1 + len(panels)), 4), squeeze=False
    )
    axes[0, 0].imshow(composite(np.asarray(sample["image"]), bands))
    titles = ["image", *panels]
    for axis, key in zip(axes[0, 1:], panels, strict=True):
        labels = np.asarray(sample[key]).squeeze()
        axis.imshow(np.ma.masked_equal(labels, 255), vmin=0, vmax=1, cmap="gray")
        axis.set_facecolor("tab:red")  # ignored pixels
    for axis, title in zip(axes[0], titles, strict=True):
        axis.set_xticks([])
        axis.set_yticks([])
        if show_titles:
            axis.set_title(title)
    if suptitle is not None:
        figure.suptitle(suptitle)
    figure.tight_layout()
    return figure
