from __future__ import annotations

import pytest

from evenhand.report.static import write_figures


@pytest.mark.parametrize(("kind", "start"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_each_kind_is_written_and_the_same_twice(summary, tmp_path, kind, start):
    pytest.importorskip("matplotlib", reason="static figures need Matplotlib")
    (one,) = write_figures(summary, tmp_path / "a", kind)
    (two,) = write_figures(summary, tmp_path / "b", kind)
    assert one.read_bytes().startswith(start)
    assert one.read_bytes() == two.read_bytes()
    assert one.name == f"01-abc-dcba.{kind}"


def test_an_unknown_kind_is_refused(summary, tmp_path):
    with pytest.raises(ValueError, match="expected one of 'svg', 'pdf', 'png'"):
        write_figures(summary, tmp_path, "gif")
