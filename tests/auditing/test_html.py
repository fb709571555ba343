import numpy as np

from evenhand import CooperativeBandits, audit


def test_an_audit_writes_a_page_of_its_own(tmp_path):
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(300, 3)), rng.choice(["<f>", "m"], 300)
    y = np.where(X[:, 0] + (s == "m") > 0, "yes", "no")
    model = CooperativeBandits(epochs=2, random_state=0).fit(X, y, sensitive_features=s)
    path = audit(model, X, y, sensitive_features=s, n_bootstrap=50).to_html(tmp_path / "audit.html")
    page = path.read_text(encoding="utf-8")
    assert "Audit of this model" in page
    assert "&lt;f&gt;" in page
    assert len(page) < 6_000_000
