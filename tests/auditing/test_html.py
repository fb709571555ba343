from evenhand import CooperativeBandits, audit
from factories import make_arrays


def test_an_audit_writes_a_page_of_its_own(tmp_path):
    X, y, s = make_arrays(300, groups=("<f>", "m"))
    model = CooperativeBandits(epochs=2, random_state=0).fit(X, y, sensitive_features=s)
    path = audit(model, X, y, sensitive_features=s, n_bootstrap=50).to_html(tmp_path / "audit.html")
    page = path.read_text(encoding="utf-8")
    assert "Audit of this model" in page
    assert "&lt;f&gt;" in page
    assert len(page) < 6_000_000
