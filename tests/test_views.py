"""Bands become channels: as measured, relative to the scene, or absent."""

import numpy as np
import pytest

from smokegeo.views import MEASURED, RELATIVE, VIEWS, make_recipe

GAIN, SHIFT = np.array([2.0, 0.5], np.float32), np.array([-1.0, 3.0], np.float32)


def recipe(views=VIEWS, has=(True, True), mean=(10.0, 20.0), std=(5.0, 4.0), **options):
    return make_recipe(views, has, (GAIN, SHIFT), np.array(mean), np.array(std), **options)


def image(*values):
    return np.stack([np.full((2, 3), value, np.float32) for value in values])


EVERYWHERE = np.ones((2, 3), bool)


def test_the_views_of_a_band_lie_side_by_side():
    channels = recipe().channels(image(15, 12), EVERYWHERE, (0, 1))
    assert channels[:, 0, 0].tolist() == [2 * 15 - 1, (15 - 10) / 5, 0.5 * 12 + 3, (12 - 20) / 4]


def test_one_view_is_the_normalising_of_training():
    channels = recipe((MEASURED,)).channels(image(15, 12), EVERYWHERE, (0, 1))
    assert channels[:, 0, 0].tolist() == [29, 9]


def test_bands_the_scene_lacks_are_absent_in_every_view():
    found = recipe(has=(False, True), mean=(np.nan, 20.0), std=(np.nan, 4.0))
    assert found.available == (False, False, True, True)
    channels = found.channels(image(12), EVERYWHERE, (1,))
    assert channels[:, 0, 0].tolist() == [0, 0, 9, -2]


def test_numbers_that_are_not_trusted_are_only_seen_in_relation_to_the_scene():
    found = recipe(trusted=False)
    assert found.available == (False, True, False, True)
    assert found.channels(image(15, 12), EVERYWHERE, (0, 1))[[0, 2]].max() == 0


def test_the_relative_view_does_not_depend_on_units():
    first = recipe((RELATIVE,)).channels(image(15, 12), EVERYWHERE, (0, 1))
    scaled = recipe((RELATIVE,), mean=(1010.0, 2010.0), std=(500.0, 400.0))
    second = scaled.channels(image(1510, 1210), EVERYWHERE, (0, 1))
    np.testing.assert_allclose(first, second, rtol=1e-6)


def test_what_is_not_valid_is_average_whatever_it_holds():
    valid = EVERYWHERE.copy()
    valid[1, 2] = False
    values = image(15, 12)
    values[:, 1, 2] = np.nan
    channels = recipe().channels(values, valid, (0, 1))
    assert (channels[:, 1, 2] == 0).all()
    assert np.isfinite(channels).all()


def test_a_flat_band_stays_zero_in_relation_to_its_scene():
    channels = recipe((RELATIVE,), mean=(15.0, 12.0), std=(0.0, 0.0)).channels(
        image(15, 12), EVERYWHERE, (0, 1)
    )
    assert (channels == 0).all()


def test_channels_end_where_they_did_in_training():
    found = recipe(limit=4.0)
    channels = found.cut(found.channels(image(15, -12), EVERYWHERE, (0, 1)))
    assert channels[:, 0, 0].tolist() == [4, 1, -3, -4]


@pytest.mark.parametrize("limit", [0, -1, "far", float("nan")])
def test_a_card_with_a_limit_that_is_none_is_refused(limit):
    from toy_models import toy_card

    from smokegeo.errors import UsageError

    with pytest.raises(UsageError, match="limit"):
        toy_card(input={"limit": limit})


@pytest.mark.parametrize("views", [(), ("sideways",)])
def test_a_card_with_unknown_views_is_refused(views):
    from toy_models import toy_card

    from smokegeo.errors import UsageError

    with pytest.raises(UsageError, match="views"):
        toy_card(input={"views": list(views)})
