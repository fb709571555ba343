"""Models trained so far, kept in a folder: an exploration that was killed goes on from there."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.atomic import write_text
from evenhand.code_version import code_version
from evenhand.workflow.persistence import load, save

if TYPE_CHECKING:
    from evenhand.workflow.candidates import Candidate


_TRAINS = "evenhand.workflow.candidates"


class TrainedSoFar:
    """The trained models of one exploration, in a folder that is made with the first of them.

    `depends_on` is all that a model depends on besides its λ and its parity, as JSON values: the data, the
    seed, and so on. Models that were trained with anything else, or by other code, are not used.
    """

    def __init__(self, folder: Path, *depends_on: Any) -> None:
        self.folder = folder
        everything = json.dumps([code_version(_TRAINS), *depends_on], default=str)
        self._key = hashlib.sha256(everything.encode()).hexdigest()[:16]

    def read(self, weight: float, parity: bool) -> tuple[Any, dict[str, Any]] | None:
        """Return a model and its measures; None if it has to be trained."""
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
            self.folder.mkdir(parents=True, exist_ok=True)
            # The model comes last: a model that is there has its measures beside it.
            write_text(path.with_suffix(".json"), json.dumps(measured))
            save(candidate.model, path)
        except OSError:
            return

    def _path(self, weight: float, parity: bool) -> Path:
        return self.folder / f"{self._key}-{weight!r}{'-parity' if parity else ''}.skops"
