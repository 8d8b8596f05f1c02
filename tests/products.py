"""Tiny fakes of the products that agencies ship, in their real folder trees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import rasterio
from rasterio.transform import from_origin

S2_TIME = "20240830T100559"
S2_NAME = "S2B_MSI{level}_{time}_N{baseline}_R022_T32TPS_20240830T134009"
S2_NATIVE_M = {
    **dict.fromkeys(("B02", "B03", "B04", "B08"), 10),
    **dict.fromkeys(("B05", "B06", "B07", "B8A", "B11", "B12"), 20),
    **dict.fromkeys(("B01", "B09", "B10"), 60),
}
L1_ID = "LC08_L1TP_193028_20200507_20200820_02_T1"
L2_ID = "LC08_L2SP_193028_20200507_20200820_02_T1"
HLS_ID = "HLS.{kind}.T32TPS.2024243T100559.v2.0"


def write_band(
    path: Path,
    stored: int = 2000,
    gsd_m: float = 30.0,
    dtype: str = "uint16",
    size_px: int = 6,
    nodata: float | None = None,
    scaling: tuple[float, float] | None = None,
) -> Path:
    """Write one band of one value, perhaps with scale and offset tags; its top left pixel is 0."""
    pixels = np.full((size_px, size_px), stored, dtype)
    pixels[0, 0] = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    jp2 = path.suffix.lower() == ".jp2"
    options = {"QUALITY": "100", "REVERSIBLE": "YES"} if jp2 else {}
    with rasterio.open(
        path,
        "w",
        driver="JP2OpenJPEG" if jp2 else "GTiff",
        width=size_px,
        height=size_px,
        count=1,
        dtype=dtype,
        crs="EPSG:32632",
        transform=from_origin(600000, 5100000, gsd_m, gsd_m),
        nodata=nodata,
        **options,
    ) as dst:
        dst.write(pixels, 1)
        if scaling is not None:
            dst.scales, dst.offsets = (scaling[:1], scaling[1:])
    return path


def s2_xml(
    level: str = "L2A",
    *,
    baseline: str | None = "05.11",
    quantification: str = "10000",
    offsets: Mapping[int, str] | None = None,
    time: str = "2024-08-30T10:05:59.024Z",
    craft: str = "Sentinel-2B",
    quantification_name: str | None = None,
    head: str = "",
) -> str:
    """Return what we read of MTD_MSIL1C.xml or MTD_MSIL2A.xml, in its real frame."""
    root = f"Level-{level[1:]}_User_Product"
    name = quantification_name or (
        "QUANTIFICATION_VALUE" if level == "L1C" else "BOA_QUANTIFICATION_VALUE"
    )
    tag = "RADIO_ADD_OFFSET" if level == "L1C" else "BOA_ADD_OFFSET"
    given = dict.fromkeys(range(13), "-1000") if offsets is None else offsets
    lines = "".join(f'<{tag} band_id="{n}">{value}</{tag}>' for n, value in given.items())
    said = "" if baseline is None else f"<PROCESSING_BASELINE>{baseline}</PROCESSING_BASELINE>"
    return f"""<?xml version="1.0" encoding="UTF-8"?>{head}
<n1:{root} xmlns:n1="https://psd-15.sentinel2.eo.esa.int/PSD/User_Product_{level}.xsd">
  <n1:General_Info>
    <Product_Info>
      <PRODUCT_START_TIME>{time}</PRODUCT_START_TIME>{said}
      <Datatake><SPACECRAFT_NAME>{craft}</SPACECRAFT_NAME></Datatake>
      <IMAGE_FILE>../../../etc/T32TPS_B02</IMAGE_FILE>
    </Product_Info>
    <Product_Image_Characteristics>
      <{name} unit="none">{quantification}</{name}>
      <AOT_QUANTIFICATION_VALUE unit="none">1000.0</AOT_QUANTIFICATION_VALUE>
      <Offsets>{lines}</Offsets>
    </Product_Image_Characteristics>
  </n1:General_Info>
</n1:{root}>
"""


def s2_granule(folder: Path, level: str = "L2A", bands: Iterable[str] = tuple(S2_NATIVE_M)) -> Path:
    """Write the images of one granule; Level 2A has them at their own and coarser sizes."""
    images = folder / "IMG_DATA"
    for band in bands:
        if level == "L1C":
            write_band(images / f"T32TPS_{S2_TIME}_{band}.jp2", gsd_m=S2_NATIVE_M[band])
            continue
        if band == "B10":
            continue
        for gsd_m in (10, 20, 60):
            if gsd_m >= S2_NATIVE_M[band] and not (band == "B08" and gsd_m > 10):
                name = f"T32TPS_{S2_TIME}_{band}_{gsd_m}m.jp2"
                write_band(images / f"R{gsd_m}m" / name, gsd_m=gsd_m)
    extra = "T32TPS_{}_TCI.jp2" if level == "L1C" else "R10m/T32TPS_{}_TCI_10m.jp2"
    write_band(images / extra.format(S2_TIME))
    return images


def safe_product(
    root: Path,
    level: str = "L2A",
    *,
    bands: Iterable[str] = tuple(S2_NATIVE_M),
    xml: str | None = None,
    baseline: str = "0511",
) -> Path:
    """Write a .SAFE folder in today's form."""
    safe = root / f"{S2_NAME.format(level=level, time=S2_TIME, baseline=baseline)}.SAFE"
    s2_granule(safe / "GRANULE" / f"{level}_T32TPS_A039080_{S2_TIME}", level, bands)
    (safe / f"MTD_MSI{level}.xml").write_text(s2_xml(level) if xml is None else xml)
    return safe


def mtl(
    product_id: str = L1_ID, *, sun: str = "60.0", scale: str = "2.0000E-05", level2: bool = False
) -> str:
    """Return what we read of a Collection 2 MTL file; Level 2 repeats Level 1's keys."""
    numbers = range(1, 10)
    surface = ""
    if level2:
        both = "".join(
            f"    REFLECTANCE_MULT_BAND_{n} = 2.75e-05\n    REFLECTANCE_ADD_BAND_{n} = -0.2\n"
            for n in range(1, 8)
        )
        surface = f"""  GROUP = LEVEL2_SURFACE_REFLECTANCE_PARAMETERS
{both}  END_GROUP = LEVEL2_SURFACE_REFLECTANCE_PARAMETERS
  GROUP = LEVEL2_SURFACE_TEMPERATURE_PARAMETERS
    TEMPERATURE_MULT_BAND_ST_B10 = 0.00341802
    TEMPERATURE_ADD_BAND_ST_B10 = 149.0
  END_GROUP = LEVEL2_SURFACE_TEMPERATURE_PARAMETERS
  GROUP = LEVEL1_PROCESSING_RECORD
    LANDSAT_PRODUCT_ID = "{L1_ID}"
  END_GROUP = LEVEL1_PROCESSING_RECORD
"""
    rescaling = "".join(
        f"    REFLECTANCE_MULT_BAND_{n} = {scale}\n    REFLECTANCE_ADD_BAND_{n} = -0.100000\n"
        for n in numbers
    )
    return f"""GROUP = LANDSAT_METADATA_FILE
  GROUP = PRODUCT_CONTENTS
    LANDSAT_PRODUCT_ID = "{product_id}"
    FILE_NAME_BAND_2 = "../../../etc/passwd"
  END_GROUP = PRODUCT_CONTENTS
  GROUP = IMAGE_ATTRIBUTES
    SPACECRAFT_ID = "LANDSAT_8"
    DATE_ACQUIRED = 2020-05-07
    SCENE_CENTER_TIME = "10:16:18.4809960Z"
    SUN_ELEVATION = {sun}
  END_GROUP = IMAGE_ATTRIBUTES
{surface}  GROUP = LEVEL1_RADIOMETRIC_RESCALING
{rescaling}  END_GROUP = LEVEL1_RADIOMETRIC_RESCALING
END_GROUP = LANDSAT_METADATA_FILE
END
"""


def mtl_collection1(product_id: str) -> str:
    """Return the same in Collection 1's groups, for Landsat 4 to 7."""
    rescaling = "".join(
        f"    REFLECTANCE_MULT_BAND_{n} = 1.0000E-03\n    REFLECTANCE_ADD_BAND_{n} = -0.003\n"
        for n in (1, 2, 3, 4, 5, 7)
    )
    return f"""GROUP = L1_METADATA_FILE
  GROUP = METADATA_FILE_INFO
    LANDSAT_PRODUCT_ID = "{product_id}"
  END_GROUP = METADATA_FILE_INFO
  GROUP = PRODUCT_METADATA
    DATE_ACQUIRED = 2005-07-01
    SCENE_CENTER_TIME = "09:50:00.1234567Z"
  END_GROUP = PRODUCT_METADATA
  GROUP = IMAGE_ATTRIBUTES
    SUN_ELEVATION = 30.0
  END_GROUP = IMAGE_ATTRIBUTES
  GROUP = RADIOMETRIC_RESCALING
{rescaling}  END_GROUP = RADIOMETRIC_RESCALING
END_GROUP = L1_METADATA_FILE
END
"""


def landsat_product(
    root: Path, product_id: str, layers: Iterable[str], mtl_text: str | None, dtype: str = "uint16"
) -> Path:
    """Write a Landsat folder: one TIFF per layer (`B2`, `SR_B2`, `QA_PIXEL`), and its MTL file."""
    folder = root / product_id
    for layer in layers:
        suffix = "tif" if layer.startswith("sr_") else "TIF"
        stored = 100 if dtype == "uint8" else 10000
        write_band(folder / f"{product_id}_{layer}.{suffix}", stored, dtype=dtype)
    if mtl_text is not None:
        (folder / f"{product_id}_MTL.txt").write_text(mtl_text)
    return folder


def landsat_level1(root: Path, mtl_text: str | None = None) -> Path:
    """Write a whole Landsat 8 Collection 2 Level-1 folder."""
    layers = [*(f"B{n}" for n in range(1, 12)), "QA_PIXEL", "QA_RADSAT", "SAA", "VZA"]
    return landsat_product(root, L1_ID, layers, mtl() if mtl_text is None else mtl_text)


def landsat_level2(root: Path, mtl_text: str | None = None) -> Path:
    """Write a whole Landsat 8 Collection 2 Level-2 folder, without MTL file unless given."""
    layers = [*(f"SR_B{n}" for n in range(1, 8)), "ST_B10", "ST_QA", "SR_QA_AEROSOL", "QA_PIXEL"]
    return landsat_product(root, L2_ID, layers, mtl_text)


def hls_product(root: Path, kind: str) -> Path:
    """Write a whole HLS folder, S30 or L30."""
    name = HLS_ID.format(kind=kind)
    numbers = (
        [f"{n:02d}" for n in (*range(1, 8), 9, 10, 11)]
        if kind == "L30"
        else [band.removeprefix("B") for band in S2_NATIVE_M]
    )
    for layer in [*(f"B{number}" for number in numbers), "Fmask", "SZA"]:
        write_band(root / name / f"{name}.{layer}.tif", 1500, dtype="int16")
    return root / name
