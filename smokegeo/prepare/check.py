"""Read every sample once, gather all faults, and see that the good ones belong together."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from smokegeo.bands import BandSet
from smokegeo.cubes import cube_bands
from smokegeo.errors import InputError, SmokegeoError
from smokegeo.labels import Place
from smokegeo.prepare.faults import SampleFault, named
from smokegeo.prepare.load import Expected, Loaded, Sample, load_frame
from smokegeo.progress import track

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Checked:
    """What is remembered of a sample that was read and found good; its pixels are not kept."""

    sample: Sample
    form: str
    bands: BandSet
    width: int
    height: int
    dtype: str
    size_bytes: int
    annotators: int
    mask_values: tuple[int, ...]
    place: Place | None


def check_samples(
    samples: Sequence[Sample], expected: Expected
) -> tuple[list[Checked], dict[str, SampleFault]]:
    """Load each sample once; return the good ones, and the fault of every other by id."""
    checked: list[Checked] = []
    faults: dict[str, SampleFault] = {}
    for sample in track(samples, "checking", len(samples)):
        try:
            item = _remember(sample, load_frame(sample, expected))
            if checked and item.bands != checked[0].bands:
                raise SampleFault("bands differ", f"from those of {checked[0].sample.id}")
            checked.append(item)
        except SampleFault as fault:
            faults[sample.id] = fault
        except SmokegeoError as error:  # two bands of one name, say
            faults[sample.id] = SampleFault("unusable", str(error).rstrip("."))
    return checked, faults


def check_together(checked: Sequence[Checked]) -> BandSet:
    """Return the bands all frames share; refuse frames that cannot be one dataset."""
    placed = [item for item in checked if item.place is not None]
    if placed and len(placed) < len(checked):
        other = next(item for item in checked if item.place is None)
        raise InputError(
            f"{len(placed)} of {len(checked)} frames are georeferenced ({placed[0].sample.id}), "
            f"the others are not ({other.sample.id}). Prepare them as two datasets."
        )
    if len({item.place.crs.to_wkt() for item in placed if item.place and item.place.crs}) > 1:
        log.warning("The frames have different CRSs; TorchGeo will warp all to the first one's.")
    sizes = {_pixel_size(item.place): item.sample.id for item in placed if item.place}
    if len(sizes) > 1:
        # TorchGeo would resample all to the first one's without a word.
        shown = named([f"{size} ({sample_id})" for size, sample_id in sorted(sizes.items())])
        raise InputError(
            f"the frames' pixels differ in size: {shown}. Warp them to one size with `gdalwarp "
            "-tr`, or prepare them as several datasets."
        )
    if len({item.dtype for item in checked}) > 1:
        log.warning("Data types differ: %s.", ", ".join(sorted({i.dtype for i in checked})))
    _warn_about_255(checked)
    return checked[0].bands


def _pixel_size(place: Place) -> str:
    return f"{abs(place.transform.a):.6g} x {abs(place.transform.e):.6g}"


def _remember(sample: Sample, loaded: Loaded) -> Checked:
    cube = loaded.frame.cube
    height, width = cube.shape[1:]
    crs = cube.rio.crs
    return Checked(
        sample,
        loaded.form,
        cube_bands(cube),
        width,
        height,
        str(cube.dtype),
        cube.nbytes + loaded.frame.mask.nbytes * (1 if loaded.frame.votes is None else 2),
        loaded.labelled.annotators,
        loaded.labelled.values,
        None if crs is None else Place(crs, cube.rio.transform()),
    )


def _warn_about_255(checked: Sequence[Checked]) -> None:
    """Say so where 255 was read as smoke in some masks and as ignored in others."""
    if not any({1, 255} <= set(item.mask_values) for item in checked):
        return
    doubtful = [i.sample.id for i in checked if 255 in i.mask_values and 1 not in i.mask_values]
    if doubtful:
        log.warning(
            "255 means ignored in some masks but was read as smoke where 1 is absent: %s.",
            ", ".join(doubtful),
        )
