"""Errors: their exit codes, and the one useful sentence inside a chain of causes."""

from itertools import pairwise

import pytest

from smokegeo.errors import (
    InputError,
    ModelError,
    OutputError,
    SmokegeoError,
    Terminated,
    UsageError,
    deepest_cause,
)


@pytest.mark.parametrize(
    ("kind", "code"),
    [(SmokegeoError, 1), (UsageError, 2), (InputError, 3), (ModelError, 4), (OutputError, 5)],
)
def test_each_kind_has_its_exit_code_and_one_root(kind, code):
    assert kind.exit_code == code
    assert issubclass(kind, SmokegeoError)
    assert str(kind("scene.tif is empty.")) == "scene.tif is empty."


def test_termination_ends_the_program_with_143_and_is_not_swallowed_as_an_error():
    assert Terminated().code == 143
    assert not isinstance(Terminated(), Exception)


def chain(*errors):
    """Raise each error from the one before it; return the last."""
    for inner, outer in pairwise(errors):
        outer.__cause__ = inner
    return errors[-1]


def test_the_deepest_cause_is_told():
    error = chain(ValueError("the disk is wet"), OSError("read failed"), RuntimeError("see above"))
    assert deepest_cause(error) == "the disk is wet"


def test_an_error_met_while_handling_another_counts_as_caused_by_it():
    error = RuntimeError("second")
    error.__context__ = ValueError("first")
    assert deepest_cause(error) == "first"


def test_a_suppressed_context_stays_suppressed():
    error = RuntimeError("second")  # as `raise error from None` leaves it
    error.__context__, error.__cause__ = ValueError("first"), None
    assert deepest_cause(error) == "second"


def test_it_is_one_line_and_never_empty():
    assert deepest_cause(ValueError("two\n  lines")) == "two lines"
    assert deepest_cause(KeyError()) == "KeyError"
