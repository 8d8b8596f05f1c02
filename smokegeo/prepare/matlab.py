"""Read MATLAB (5 to 7.3) and HDF5 files: plain numeric arrays only, and from this file only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy.io
from numpy.typing import NDArray

from smokegeo.prepare.faults import SampleFault
from smokegeo.prepare.native import check_size

_NUMERIC = frozenset({"double", "single", "logical"}) | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_MAX_DEPTH = 4


def read_mat(path: Path) -> dict[str, NDArray[Any]]:
    """Return the numeric arrays of a MATLAB file by name, axes as MATLAB shows them."""
    if h5py.is_hdf5(path):
        # MATLAB writes columns first: what it calls (y, x, band) arrives as (band, x, y).
        return {name: values.T for name, values in read_hdf5(path).items()}
    contents = scipy.io.whosmat(path)
    names = []
    for name, shape, kind in contents:
        if kind in _NUMERIC:
            check_size(shape, np.dtype(np.float64))
            names.append(name)
    if not names:
        kinds = ", ".join(sorted({kind for _, _, kind in contents})) or "nothing"
        raise SampleFault("unreadable", f"{path.name} holds {kinds}, not plain numeric arrays")
    loaded = scipy.io.loadmat(path, variable_names=names)
    return {name: loaded[name] for name in names}


def read_hdf5(path: Path) -> dict[str, NDArray[Any]]:
    """Return the numeric arrays of an HDF5 file by name; refuse data that lies elsewhere."""
    with h5py.File(path, "r") as file:
        found = list(_datasets(file, 0))
        arrays: dict[str, NDArray[Any]] = {}
        for name, dataset in found:
            if dataset.external or dataset.is_virtual:
                raise SampleFault("unreadable", f"{path.name} keeps its data in another file")
            if dataset.dtype.kind in "biuf" and dataset.shape:
                check_size(dataset.shape, dataset.dtype)
                arrays[name] = dataset[()]
    if not arrays:
        raise SampleFault("unreadable", f"{path.name} holds no plain numeric arrays")
    return arrays


def _datasets(group: Any, depth: int) -> Iterator[tuple[str, Any]]:
    for name in group:
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            raise SampleFault("unreadable", f"{name} is a link into another file")
        if isinstance(link, h5py.SoftLink) or name.startswith("#"):
            continue  # the target is met under its own name; '#' is MATLAB's own bookkeeping
        item = group[name]
        if isinstance(item, h5py.Dataset):
            yield name, item
        elif isinstance(item, h5py.Group) and depth < _MAX_DEPTH:
            yield from _datasets(item, depth + 1)
