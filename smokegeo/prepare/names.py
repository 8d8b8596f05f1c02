"""What file and folder names say: image or mask, which frame, scene, split and annotator."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath

#: All names here are compared in lower case.
IMAGE_FOLDERS = frozenset(
    {"jpegimages", "images", "image", "img", "imgs", "hsi", "hsis", "hyperspectral", "data"}
    | {"cubes", "cube", "npy", "npz", "mat", "h5", "hdf5", "envi", "tif", "tiff", "png"}
    | {"raw", "mosaic", "mosaics", "frames", "input", "inputs"}
)
MASK_FOLDERS = frozenset(
    {"segmentationclass", "masks", "mask", "labels", "label", "gt", "gts", "groundtruth"}
    | {"ground_truth", "annotations", "annotation"}
)
ENVI_SUFFIXES = frozenset({".bsq", ".bil", ".bip", ".raw", ".img", ".dat", ""})
PICTURE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp"})
TIFF_SUFFIXES = frozenset({".tif", ".tiff"})
ARRAY_SUFFIXES = frozenset({".npy", ".npz", ".mat", ".h5", ".hdf5", ".he5"})
DATA_SUFFIXES = ENVI_SUFFIXES | PICTURE_SUFFIXES | TIFF_SUFFIXES | ARRAY_SUFFIXES | {".hdr"}
SPLIT_NAMES = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}
RGB_WORDS = frozenset({"rgb", "visible", "vis"})
THERMAL_WORDS = frozenset({"ir", "thermal", "infrared", "lwir", "tir"})

_ANNOTATOR_FOLDER = re.compile(
    r"^(?:masks?|labels?|gts?|annotations?|annotators?|segmentationclass)[ _-]?(\d+)$"
)
_MASK_SUFFIX = re.compile(
    r"(?:^|[ _.-])(?:masks?|gt|labels?|annotations?|annotator|ann)[ _-]?(\d*)$", re.IGNORECASE
)
_IMAGE_SUFFIX = re.compile(r"(?:^|[ _.-])(?:hsi|cube|image|img|data)$", re.IGNORECASE)
_BAND_SUFFIX = re.compile(
    r"(?:^|[ _-])(?:(?P<nm>\d+(?:\.\d+)?) ?nm|(?:band|channel|ch)[ _-]?(?P<number>\d+))$",
    re.IGNORECASE,
)
_FRAME_NUMBER = re.compile(r"\((\d+)\)")


class Role(Enum):
    """What a file holds."""

    IMAGE = "image"
    RGB = "rgb"
    THERMAL = "thermal"
    MASK = "mask"


@dataclass(frozen=True, slots=True)
class Name:
    """What a path says: the file's role, its frame's key (folders, then stem), split, annotator."""

    role: Role
    key: tuple[str, ...]
    split: str | None = None
    annotator: int = 0


@dataclass(frozen=True, slots=True)
class BandName:
    """One band of a frame stored as one file per band: the frame's stem, wavelength or number."""

    stem: str
    wavelength_nm: float | None
    number: int


def read_name(path: PurePath, *, pairs: bool) -> Name:
    """Read a path relative to the dataset; with `pairs`, tell RGB and thermal files apart."""
    role, split, annotator = Role.IMAGE, None, 0
    folders: list[str] = []
    for part in path.parts[:-1]:
        lowered = part.casefold()
        found = _folder_role(lowered, pairs)
        number = _ANNOTATOR_FOLDER.match(lowered)
        if number is not None:
            role, annotator = Role.MASK, int(number.group(1))
        elif found is not None:
            role = found
        elif lowered in SPLIT_NAMES:
            split = SPLIT_NAMES[lowered]
        else:
            folders.append(part)
    stem = frame_stem(path.name)
    suffix = _MASK_SUFFIX.search(stem)
    if suffix is not None:
        role, stem = Role.MASK, stem[: suffix.start()]
        annotator = int(suffix.group(1) or annotator)
    elif role is Role.IMAGE:
        stem = _IMAGE_SUFFIX.sub("", stem)
    if pairs:
        spoken, stem = _spoken_role(stem)
        role = spoken if spoken is not None and role is not Role.MASK else role
    # A file called just "mask.png" or "cube.npy" belongs to the frame its folder is.
    return Name(role, (*folders, stem) if stem else tuple(folders), split, annotator)


def frame_stem(filename: str) -> str:
    """Return a file name without its suffix; of `cube.bsq.hdr` both are dropped."""
    stem = filename
    while (tail := PurePath(stem).suffix) and tail.casefold() in DATA_SUFFIXES:
        stem = stem[: -len(tail)]
    return stem


def band_name(stem: str) -> BandName | None:
    """Read a stem such as `frame7_600nm` or `band_03`, or return None."""
    match = _BAND_SUFFIX.search(stem)
    if match is None:
        return None
    nm = match["nm"]
    number = 0 if match["number"] is None else int(match["number"])
    return BandName(stem[: match.start()], None if nm is None else float(nm), number)


def scene_of(key: tuple[str, ...]) -> str:
    """Return the scene of a frame: its folders, else its name before the last number."""
    if len(key) > 1:
        return "-".join(key[:-1])
    return re.sub(r"[ _.(-]*\d+\)?$", "", key[-1]) if key else ""


def frame_number(stem: str) -> int | None:
    """Return N of `254p RGB Frame (N)` or of a bare number; 254 there is the image size."""
    match = _FRAME_NUMBER.search(stem)
    if match is not None:
        return int(match.group(1))
    return int(stem) if stem.isdecimal() else None


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that puts `band_2` before `band_10`."""
    parts = re.split(r"(\d+)", text.casefold())
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)


def _folder_role(lowered: str, pairs: bool) -> Role | None:
    words = re.split(r"[^a-z0-9]+", lowered)
    if lowered in MASK_FOLDERS or words[-1] in MASK_FOLDERS:
        return Role.MASK
    if pairs:
        if RGB_WORDS.intersection(words):
            return Role.RGB
        if THERMAL_WORDS.intersection(words):
            return Role.THERMAL
    elif lowered in RGB_WORDS:
        return Role.IMAGE
    return Role.IMAGE if lowered in IMAGE_FOLDERS else None


def _spoken_role(stem: str) -> tuple[Role | None, str]:
    """Take the word for RGB or thermal out of a stem: `254p RGB Frame (3)` -> `254p Frame (3)`."""
    words = re.split(r"([ _.-]+)", stem)
    for index in range(0, len(words), 2):
        word = words[index].casefold()
        if word in RGB_WORDS | THERMAL_WORDS:
            role = Role.RGB if word in RGB_WORDS else Role.THERMAL
            left, right = "".join(words[: max(index - 1, 0)]), "".join(words[index + 1 :])
            return role, left + right if left else right.lstrip(" _.-")
    return None, stem
