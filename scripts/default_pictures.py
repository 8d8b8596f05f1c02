"""Draw predictions over images, to look at.

    python scripts/default_pictures.py SHEET.jpg PICTURE.png...

puts pictures that `evaluate_default.py --pictures` drew onto one sheet, for a model's card.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from default_judges import Picture
from numpy.typing import NDArray
from PIL import Image


def colours(picture: Picture) -> NDArray[np.float32]:
    """Return the picture as an image (y, x, 3) to look at, brightened if it holds reflectances."""
    wanted = [b for b in ("red", "green", "blue") if b in picture.bands]
    if len(wanted) < 3:
        wanted = [picture.bands[i] for i in np.linspace(0, len(picture.bands) - 1, 3).astype(int)]
    image = np.stack([picture.values[picture.bands.index(b)] for b in wanted], -1)
    image = image.astype(np.float32)
    top = np.quantile(image[picture.valid], 0.98) if picture.valid.any() else 1.0
    return np.asarray(np.clip(image / max(1.0, float(top)), 0, 1) ** np.float32(0.8))


def draw(path: Path, picture: Picture, smoke: NDArray[np.float32], level: float) -> None:
    """Draw an image with the outline of what was found beside its probabilities."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.6))
    axes[0].imshow(colours(picture))
    if (smoke >= level).any() and not (smoke >= level).all():
        axes[0].contour(smoke, [level], colors="red", linewidths=0.7)
    if (picture.labels == 1).any() and not (picture.labels == 1).all():
        axes[0].contour(picture.labels == 1, [0.5], colors="cyan", linewidths=0.6)
    axes[1].imshow(smoke, vmin=0, vmax=1, cmap="inferno")
    axes[0].set_title(picture.name[-40:], fontsize=8)
    for axis in axes:
        axis.set_axis_off()
    figure.tight_layout(pad=0.3)
    figure.savefig(path, dpi=60)
    plt.close(figure)


def make_sheet(pictures: Sequence[Path], path: Path, columns: int = 2) -> None:
    """Put pictures onto one sheet, row by row."""
    images = [Image.open(picture).convert("RGB") for picture in pictures]
    width, height = (max(image.size[i] for image in images) for i in (0, 1))
    rows = -(-len(images) // columns)
    sheet = Image.new("RGB", (width * columns, height * rows), "white")
    for place, image in enumerate(images):
        row, column = divmod(place, columns)
        sheet.paste(image, (column * width, row * height))
    sheet.save(path, quality=80)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Put pictures onto one sheet.")
    parser.add_argument("sheet", type=Path)
    parser.add_argument("pictures", type=Path, nargs="+")
    args = parser.parse_args()
    make_sheet(args.pictures, args.sheet)
