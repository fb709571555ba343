"""Tables larger than memory, some rows at a time: Parquet files, Dask partitions, DuckDB relations."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand.tables.decimals import with_points
from evenhand.tables.files import pyarrow_for, sha256_of, whole_parquet
from evenhand.tables.paths import bare_name, check_folder

LARGE = 1_000_000  # rows; a larger Parquet file is not held in memory
BATCH = 100_000  # rows in memory at a time, as they are in the table


class Pieces:
    """A table that is read in pieces, with row numbers as index; every reading gives the same rows.

    Parameters
    ----------
    origin : str
        Where it comes from.
    comma : bool
        Whether numbers in text have a decimal comma.
    """

    name = "table"

    def __init__(self, origin: str, comma: bool = False) -> None:
        self.origin, self._comma = origin, comma
        self.decimal = "," if comma else "."  # of a CSV file, known after the first reading
        self.notes: list[str] = []  # notes about the first reading

    def batches(self, columns: Sequence[str] | None = None, coded: Sequence[str] = ()) -> Iterator[Any]:
        """Yield pandas DataFrames; text in the columns `coded` may come as categories, which is faster."""
        start = 0
        for frame in self._frames(None if columns is None else list(columns), list(coded)):
            frame = frame.rename(columns=str)
            if not start and frame.columns.has_duplicates:
                twice = frame.columns[frame.columns.duplicated()][0]
                raise ValueError(f"{self.origin} has the column {twice!r} more than once; expected it once.")
            frame = with_points(frame) if self._comma else frame
            yield frame.set_axis(pd.RangeIndex(start, start + len(frame)), axis=0)
            start += len(frame)
        self.check()

    def place(self, row: Any) -> str:
        """Return where a row is, in words."""
        return f"{self.origin}, row {int(row)}"

    @property
    def large(self) -> bool:
        """Whether the table may be too large for memory."""
        return True

    def check(self) -> None:
        """Raise if the table is no longer what it was."""

    def key(self) -> Any:
        """Return what identifies this table and its current state, without reading it."""
        return self.origin

    def sha256(self) -> str:
        """Return a digest of the files."""
        return ""

    def _frames(self, columns: list[str] | None, coded: list[str]) -> Iterator[pd.DataFrame]:
        raise NotImplementedError


class FilePieces(Pieces):
    """One file, or several."""

    def __init__(self, path: Path, files: list[Path], comma: bool = False) -> None:
        super().__init__(str(path), comma)
        self.name, self.files, self._path = bare_name(path), files, path
        self._before = self.key()

    def key(self) -> Any:
        """Return the files' names, sizes and modification times."""
        there = sorted(self._path.glob("*.parquet")) if self._path.is_dir() else self.files
        stats = [(str(path), path.stat()) for path in there if path.exists()]
        return [(path, found.st_size, found.st_mtime_ns) for path, found in stats]

    def check(self) -> None:
        """Raise if a file was changed, added or removed since the first look."""
        for path, *_ in set(self._before) ^ set(self.key()):
            raise ValueError(f"{path} was changed while it was read; expected it to stay as it is.")

    def sha256(self) -> str:
        """Return the digest of the file; of several files, that of their digests."""
        digests = [sha256_of(path) for path in self.files]
        return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


class ParquetPieces(FilePieces):
    """One Parquet file, or several with the same columns."""

    def __init__(self, path: Path, files: list[Path], comma: bool = False) -> None:
        super().__init__(path, files, comma)
        check_alike(files)

    @property
    def large(self) -> bool:
        """Whether it is a folder, or has many rows."""
        pyarrow = pyarrow_for(self.files[0])
        return self._path.is_dir() or pyarrow.parquet.read_metadata(self._path).num_rows > LARGE

    def place(self, row: Any) -> str:
        """Return the file of a row, and its number there."""
        pyarrow, at = pyarrow_for(self.files[0]), int(row)
        for path in self.files:
            rows = pyarrow.parquet.read_metadata(path).num_rows
            if at < rows:
                return f"{path}, row {at}"
            at -= rows
        return super().place(row)

    def _frames(self, columns: list[str] | None, coded: list[str]) -> Iterator[pd.DataFrame]:
        return self.frames(BATCH, columns, coded)

    def frames(
        self, size: int, columns: list[str] | None = None, coded: Sequence[str] = ()
    ) -> Iterator[pd.DataFrame]:
        """Yield the rows as they are, at most `size` at a time."""
        pyarrow = pyarrow_for(self.files[0])
        for path in self.files:
            group = -1
            try:
                with pyarrow.parquet.ParquetFile(path, read_dictionary=list(coded)) as file:
                    names = columns or list(file.schema_arrow.empty_table().to_pandas().columns)
                    for group in range(file.num_row_groups):
                        for batch in file.iter_batches(size, row_groups=[group], columns=names):
                            yield batch.to_pandas()
            except (pyarrow.ArrowException, OSError) as error:
                self.check()
                where = "" if group < 0 else f" (row group {group})"
                raise ValueError(f"{path} is not a complete Parquet file{where}: {error}") from error


def parquet_files(folder: Path, comma: bool = False) -> ParquetPieces:
    """Return the Parquet files of a folder as one table."""
    check_folder(folder)
    return ParquetPieces(folder, sorted(folder.glob("*.parquet")), comma)


class DaskPieces(Pieces):
    """The partitions of a Dask frame, computed one after another: the cluster reads, one process learns."""

    def __init__(self, frame: Any, comma: bool = False) -> None:
        super().__init__("the Dask frame", comma)
        self._frame = frame

    def key(self) -> Any:
        """Return the name that Dask gives to this frame."""
        return str(self._frame._name)

    def _frames(self, columns: list[str] | None, coded: list[str]) -> Iterator[pd.DataFrame]:
        frame = self._frame if columns is None else self._frame[columns]
        for partition in frame.partitions:
            found = partition.compute()
            for start in range(0, len(found), BATCH):
                yield found.iloc[start : start + BATCH]


class DuckdbPieces(Pieces):
    """The rows of a DuckDB relation, which may come in another order each time."""

    def __init__(self, relation: Any, comma: bool = False) -> None:
        super().__init__("the relation of DuckDB", comma)
        self._relation = relation

    @property
    def large(self) -> bool:
        """Whether it has many rows."""
        return len(self._relation) > LARGE

    def key(self) -> Any:
        """Return the query."""
        return str(self._relation.sql_query())

    def _frames(self, columns: list[str] | None, coded: list[str]) -> Iterator[pd.DataFrame]:
        from duckdb import ColumnExpression

        found = self._relation.select(*map(ColumnExpression, columns or self._relation.columns))
        # Older versions of DuckDB have another name for it.
        reader = found.to_arrow_reader if hasattr(found, "to_arrow_reader") else found.fetch_record_batch
        for batch in reader(BATCH):
            yield batch.to_pandas()


def check_alike(files: list[Path]) -> None:
    """Raise if files differ in their columns: a reader would silently use those of the first."""
    first = None
    for path in files:
        with whole_parquet(path) as pyarrow:
            schema = pyarrow.parquet.read_schema(path)
        found = {field.name: str(getattr(field.type, "value_type", field.type)) for field in schema}
        first = first or found
        name = next((name for name in {**first, **found} if first.get(name) != found.get(name)), None)
        if name is not None:
            raise ValueError(
                f"Got {name!r} as {found.get(name, 'no column')} in {path}, but as "
                f"{first.get(name, 'no column')} in {files[0]}; expected the same columns in every file."
            )


def drawn(rows: Any, seed: int, stream: int) -> Any:
    """Return a random number in [0, 1) per row number, that of `evenhand.bandits.randomness.uniform`.

    >>> drawn(np.array([1]), 0, 0).round(6).tolist(), drawn(np.array([1]), 0, 1).round(6).tolist()
    ([0.701212], [0.215868])
    """
    with np.errstate(over="ignore"):  # modulo 2⁶⁴ is intended
        key = _scrambled(np.uint64(seed), np.uint64(stream))
        bits = _scrambled(key, np.asarray(rows).astype(np.uint64))
    return (bits >> np.uint64(11)).astype(np.float64) / 2**53


def _scrambled(seed: Any, counter: Any) -> Any:
    x = seed + (counter + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
