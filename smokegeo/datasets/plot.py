"""Pictures of samples: colour composites of any band set, masks and predictions beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smokegeo.bands import BandSet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Centres of red, green and blue light, and the largest distance that still counts as such.
_RGB_NM = (650.0, 555.0, 470.0)
_NEAR_NM = 60.0


def composite_indexes(bands: BandSet) -> tuple[int, int, int]:
    """Return the bands to show as red, green and blue: true colour if possible.

    Otherwise the longest, middle and shortest wavelength, the usual false colour; thermal bands
    only if there is nothing else.
    """
    optical = [
        (nm, i) for i, nm in enumerate(bands.wavelengths_nm) if nm is not None and nm < 3000
    ] or [(float(i), i) for i in range(len(bands))]
    true = [min(optical, key=lambda item: abs(item[0] - target)) for target in _RGB_NM]
    if all(abs(nm - target) <= _NEAR_NM for (nm, _), target in zip(true, _RGB_NM, strict=True)):
        red, green, blue = (i for _, i in true)
        return red, green, blue
    order = [i for _, i in sorted(optical)]
    return order[-1], order[len(order) // 2], order[0]


def composite(image: NDArray[Any], bands: BandSet) -> NDArray[np.float32]:
    """Return an (H, W, 3) picture in 0..1, stretched from the 2nd to the 98th percentile.

    All three channels share one stretch, so that the colours stay what they are.
    """
    picture = image[list(composite_indexes(bands))].astype(np.float32).transpose(1, 2, 0)
    low, high = np.percentile(picture[np.isfinite(picture)], (2, 98)) if picture.size else (0, 1)
    stretched = (np.nan_to_num(picture, nan=low) - low) / max(float(high - low), 1e-6)
    return np.asarray(np.clip(stretched, 0, 1), np.float32)


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
