"""The theorem's empirical side: smallest and mean squared gradient norm against T, with the slope in logarithms.

    python experiments/figure_theorem.py [--full]        # writes results/theorem.html

Algorithm 1 (plain ascent, sampled actions, constant rate) with the published reward and with the cured one. The
gradient is exact, over everybody in the training part.
"""

from __future__ import annotations

import plotly.graph_objects as go
from common import run

from evenhand.protocol.findings import theorem_in_words

if __name__ == "__main__":
    results = run(__doc__, methods=["CCB"])
    figure = go.Figure()
    for study in results.theorem:
        for which in ("smallest", "mean"):
            name = f"{study['method']}, {study['dataset']}: {which} (slope {study['slope_of_' + which]:.2f})"
            figure.add_trace(go.Scatter(x=study["step"], y=study[which], name=name))
    figure.update_xaxes(type="log", title="T")
    figure.update_yaxes(type="log", title="squared gradient norm")
    figure.update_layout(template="plotly_white")
    figure.write_html(results.out / "theorem.html")
    print("\n".join(theorem_in_words(results.theorem)))
    print(results.out / "theorem.html")
