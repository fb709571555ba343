"""Tests run in one thread each: set too late, the number of threads would make the suite several times slower."""

from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from threadpoolctl import threadpool_info


def test_libraries_use_one_thread():
    assert _openmp_effective_n_threads() == 1
    assert {library["num_threads"] for library in threadpool_info()} == {1}
