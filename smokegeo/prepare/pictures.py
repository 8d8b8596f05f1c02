"""Read PNG, JPEG and BMP frames without losing bits."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import rasterio
from PIL import Image
from rasterio.errors import NotGeoreferencedWarning

from smokegeo.prepare.faults import SampleFault
from smokegeo.prepare.native import Native

_FORMATS = ("PNG", "JPEG", "BMP")
_BLACK = (0, 0, 0)


def read_picture(path: Path) -> Native:
    """Read a picture as (y, x) if grey, else as (channel, y, x)."""
    if _is_deep_colour_png(path):
        return _read_deep_png(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(path, formats=_FORMATS) as image:
            image.load()
            form = (image.format or "picture").lower()
            if image.mode in ("1", "L"):
                return Native(np.array(image).astype(np.uint8, copy=False), form)
            if image.mode.startswith("I"):  # 16-bit grey, which older Pillows widen to 32
                return Native(np.array(image).astype(np.uint16), form)
            plain = image.mode in ("RGB", "RGBA", "LA")
            # A palette's indices may be in any order; its colours are what was meant.
            colours = np.moveaxis(np.array(image if plain else image.convert("RGB")), -1, 0)
            if image.mode == "P" and (colours == colours[:1]).all():
                return Native(colours[0], form)
            return Native(colours, form, band_axis=0)


def read_label_picture(path: Path) -> Native:
    """Read a mask picture; a palette of black and one colour means that colour, else indices.

    Of the colours that are used, or of the palette's own where only one is.
    """
    native = read_picture(path)
    with Image.open(path, formats=_FORMATS) as image:
        palette = image.getpalette("RGB") if image.mode == "P" else None
        if palette is None:
            return native
        indices = np.array(image)
    used = np.unique(indices).tolist()
    colours = [tuple(palette[3 * i : 3 * i + 3]) for i in used]
    if len(used) == len(set(colours)) == 2 and _BLACK in colours:
        smoke = used[1 - colours.index(_BLACK)]
        indices = (indices == smoke).astype(np.uint8)
    elif len(used) == 1:
        known = {tuple(palette[i : i + 3]) for i in range(0, len(palette), 3)}
        if colours == [_BLACK] and len(known) > 1:
            indices = np.zeros_like(indices)
        elif {_BLACK, *colours} == known:
            indices = np.ones_like(indices)
    return Native(indices, native.form)


def read_grey(path: Path) -> Native:
    """Read a picture as one (y, x) channel, colours weighted into grey."""
    native = read_picture(path)
    if native.values.ndim == 2:
        return native
    if native.values.dtype != np.uint8:
        raise SampleFault("wrong band count", f"{path.name} is 16-bit colour, not one channel")
    with Image.open(path, formats=_FORMATS) as image:
        return Native(np.array(image.convert("L")), native.form)


def _is_deep_colour_png(path: Path) -> bool:
    """Tell 16-bit colour PNGs, which Pillow silently cuts to 8 bit."""
    with path.open("rb") as handle:
        head = handle.read(26)
    return head[:8] == b"\x89PNG\r\n\x1a\n" and len(head) == 26 and head[24] == 16 and head[25] != 0


def _read_deep_png(path: Path) -> Native:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with rasterio.open(path.resolve(), driver="PNG") as src:
            if Image.MAX_IMAGE_PIXELS and src.width * src.height > Image.MAX_IMAGE_PIXELS:
                raise SampleFault("too large", f"{path.name}: {src.width}x{src.height}")
            return Native(src.read(), "png", band_axis=0)
