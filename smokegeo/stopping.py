"""Stop a training so that it can go on later as if it had not been stopped."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lightning
from lightning.pytorch.callbacks import Checkpoint

from smokegeo.errors import Terminated

log = logging.getLogger(__name__)

#: Signals that stop a training.
_STOPS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def plain_interrupts(trainer: lightning.Trainer) -> Iterator[None]:
    """Keep Ctrl-C what it is: Lightning makes it exit 1; a scheduler or shell expects 130."""
    try:
        yield
    except SystemExit as error:
        if error.code == 1 and trainer.interrupted:
            raise KeyboardInterrupt from error
        raise


class SaveWhenStopped(Checkpoint):
    """Stop between two steps when a signal asks for it, with a checkpoint to resume from.

    Inside a step, prototypes and batch statistics have moved and weights have not; a resumed run
    would move them twice. A validation that is due is done first: Lightning never repeats it. A
    second signal stops at once and leaves the checkpoint before as it is.

    It is a `Checkpoint` because Lightning calls those last: what it stops after is already saved.
    """

    def __init__(self, path: Path, val_every: int) -> None:
        self.path, self.val_every = path, val_every
        #: Whether all that belongs to the last step is done, and nothing of the next.
        self.between_steps = False
        self.asked: int | None = None
        self._pid = os.getpid()
        self._of_children: Any = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take Ctrl-C and SIGTERM as a question while a training runs.

        Loader processes are born with these handlers: they outlive a Ctrl-C, which goes to all.
        """
        before = {}
        if threading.current_thread() is threading.main_thread():  # Python lets no other listen
            before = {number: signal.getsignal(number) for number in _STOPS}
        heard = [number for number, old in before.items() if old not in (None, signal.SIG_IGN)]
        try:
            for number in heard:
                signal.signal(number, self._hear)
            yield
        except (RuntimeError, EOFError, ConnectionError) as error:
            # SIGTERM kills loader processes, and Ctrl-C where they are not forked: the next batch
            # does not come, or not whole.
            plain = isinstance(error, RuntimeError) and "DataLoader worker" not in str(error)
            if self.asked is not None and not plain:
                raise self._error() from error
            raise
        finally:
            for number in heard:
                signal.signal(number, before[number])
            if self._of_children is not None:
                signal.signal(signal.SIGCHLD, self._of_children)
        if self.asked is not None:
            raise self._error()

    def _hear(self, number: int, frame: Any) -> None:
        if self.asked is not None:
            self.between_steps = False  # or anywhere; nobody waits for a checkpoint now
            raise self._error()
        self.asked = number
        if os.getpid() == self._pid:
            self._expect_loaders_to_die()
            log.info("stopping after this step, and its validation if one is due; again: at once")

    def _expect_loaders_to_die(self) -> None:
        """Keep torch from raising wherever we are when SIGTERM has killed a loader process, too.

        A step that waits for its batch still finds out, in its own time.
        """
        if hasattr(signal, "SIGCHLD"):
            self._of_children = signal.signal(signal.SIGCHLD, lambda *_: None)

    def _error(self) -> BaseException:
        return KeyboardInterrupt() if self.asked == signal.SIGINT else Terminated()

    def on_train_start(self, trainer: lightning.Trainer, pl_module: Any) -> None:
        """Come before Lightning, which would stop inside a validation."""
        if signal.getsignal(signal.SIGINT) == self._hear:
            signal.signal(signal.SIGTERM, self._hear)

    def on_train_batch_start(self, trainer: lightning.Trainer, *args: Any, **kwargs: Any) -> None:
        """Note that a step has begun."""
        self.between_steps = False

    def on_train_batch_end(self, trainer: lightning.Trainer, *args: Any, **kwargs: Any) -> None:
        """Stop here if asked to, unless a validation is due."""
        if trainer.global_step % self.val_every:
            self._step_done(trainer)

    def on_validation_end(self, trainer: lightning.Trainer, pl_module: Any) -> None:
        """Stop here if asked to; the other checkpoints are written."""
        if trainer.state.fn == "fit":
            self._step_done(trainer)

    def on_train_end(self, trainer: lightning.Trainer, pl_module: Any) -> None:
        """Stop here if asked to; what comes later saves nothing."""
        self._step_done(trainer)
        self.between_steps = False

    def _step_done(self, trainer: lightning.Trainer) -> None:
        self.between_steps = True
        # All processes stop at the same step, whichever of them was asked.
        if trainer.strategy.reduce_boolean_decision(self.asked is not None, all=False):
            raise self._error()

    def on_exception(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        exception: BaseException,
    ) -> None:
        """Save, if the training was stopped and not broken, and where it can be resumed."""
        if self.asked is None and not isinstance(exception, (KeyboardInterrupt, SystemExit)):
            return
        if self.between_steps:
            trainer.save_checkpoint(self.path)
            log.info("stopped at step %d; continue with --resume", trainer.global_step)
        elif self.path.is_file():
            log.info("stopped inside a step; --resume goes on from the checkpoint before")
