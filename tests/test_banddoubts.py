"""What is said of bands that mean nothing, or may mean something else."""

import pytest

from smokegeo.banddoubts import doubt_of_counting, doubt_of_repeats, not_understood
from smokegeo.bands import Band


def test_nothing_is_said_of_bands_that_are_known():
    assert not_understood(["red", "nir"], ["R", "N"], [1, 2]) is None


@pytest.mark.parametrize(
    ("names", "texts", "said", "example"),
    [
        (["red", None], ["red", "foo"], "band 2 (foo) is not", "red,thermal"),
        (["red", None, None], ["red", "", ""], "bands 2 to 3 are not", "red,nir,swir1"),
        ([None, "red", None], ["x", "red", ""], "bands 1 (x), 3 are not", "nir,red,swir1"),
        # no example where it would name a band twice, or not all of them
        (["thermal", None], ["thermal", "foo"], "band 2 (foo) is not", ""),
        (["red", "red", None], ["red", "red", "foo"], "band 3 (foo) is not", ""),
        (["red", *[None] * 4], ["red", *[""] * 4], "bands 2 to 5 are not", ""),
    ],
)
def test_what_is_not_understood_is_told_with_the_remedy(names, texts, said, example):
    text = not_understood(names, texts, range(1, len(names) + 1))
    assert text.startswith(f"{said} understood; name each in order with --bands")
    assert text.endswith(f", for instance {example}" if example else "--bands")


@pytest.mark.parametrize(
    ("texts", "sensor"),
    [
        (["B1", "B2", "B3"], None),
        (["B1", "B2", "B3"], "landsat8"),
        (["B1", "B2", "B3", "B4"], "landsat5"),
        (["B01", "B02", "B03"], "sentinel2"),
        (["B3", "B2", "B1"], "sentinel2"),
        (["B1"], "sentinel2"),
    ],
)
def test_numbers_that_are_the_sensors_own_are_not_doubted(texts, sensor):
    assert doubt_of_counting(texts, sensor) is None


def test_bands_that_are_there_twice_are_told_once():
    red, green, blue, heat = (
        Band(n, nm) for n, nm in (("r", 655), ("g", 560), ("b", 480), ("t", None))
    )
    assert doubt_of_repeats((red, green, heat, heat), (1, 2, 3, 4)) is None
    assert doubt_of_repeats((red, Band("r", 665)), (1, 2)) is None  # two bands of one name
    said = doubt_of_repeats((red, green, blue, red, red), (1, 2, 3, 5, 6))
    assert said is not None
    assert said.startswith("r is there 3 times (bands 1, 5, 6); the first is used. Choose with")
    said = doubt_of_repeats((red, green, red, green), (1, 2, 3, 4))
    assert said is not None
    assert said.startswith("r is there 2 times (bands 1, 3), 1 more likewise; the first is used")
