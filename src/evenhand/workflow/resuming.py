"""What `fit` has trained so far, in a folder beside its model file: killed, it goes on from there."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand import load, save
from evenhand.code_version import code_version

if TYPE_CHECKING:
    from evenhand.workflow.tradeoff import Candidate


class Unfinished:
    """The trained models of a `fit` that has not ended.

    Parameters
    ----------
    output : Path
        The model file that `fit` will write.
    about : JSON values
        All that a model depends on besides its λ and its parity: the data, the seed, and so on. What was
        trained with anything else, or with other code, is not taken up.
    """

    def __init__(self, output: Path, *about: Any) -> None:
        self.folder = output.with_name(f".{output.name}.unfinished")
        told = json.dumps([code_version("evenhand.workflow.tradeoff"), *about], default=str)
        self._key = hashlib.sha256(told.encode()).hexdigest()[:16]

    def read(self, weight: float, parity: bool) -> tuple[Any, dict[str, Any]] | None:
        """Return the model of this point and what was measured of it; None if it must be trained."""
        path = self._path(weight, parity)
        if not path.is_file():
            return None
        try:
            return load(path), json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        except (ValueError, OSError):  # damaged: it is trained again
            return None

    def keep(self, candidate: Candidate) -> None:
        """Write a trained model; where the folder can't be written, nothing is kept."""
        path = self._path(candidate.divergence_weight, candidate.parity)
        measured = {"validation": candidate.validation, "curve": candidate.curve}
        try:
            self.folder.mkdir(exist_ok=True)
            # The model comes last, whole or not at all: where it lies, its numbers do too.
            path.with_suffix(".json").write_text(json.dumps(measured), encoding="utf-8")
            save(candidate.model, path)
        except OSError:
            return

    def clear(self) -> None:
        """Forget it all: `fit` has ended."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, weight: float, parity: bool) -> Path:
        return self.folder / f"{self._key}-{weight!r}{'-parity' if parity else ''}.skops"
