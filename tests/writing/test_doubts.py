"""Warnings of a scene are heard, and those of other scenes are not."""

from __future__ import annotations

import logging
from threading import Thread

from smokegeo.writing.doubts import heard

log = logging.getLogger("smokegeo.scene")


def test_warnings_are_heard_and_nothing_else():
    log.warning("before")
    with heard() as warnings:
        log.warning("%s: two\nlines", "scene.tif")
        log.error("an error")
        log.info("a note")
        logging.getLogger("other").warning("not ours")
    log.warning("after")
    assert warnings == ["scene.tif: two\N{REPLACEMENT CHARACTER}lines"]


def test_scenes_at_the_same_time_hear_their_own():
    with heard() as warnings:
        other = Thread(target=log.warning, args=("of another scene",))
        other.start()
        other.join()
    assert warnings == []
