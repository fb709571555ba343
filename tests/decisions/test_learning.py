"""Candidates are learned beside deciding, judged on people they never met, promoted, rolled back and replayed."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from evenhand import ConflictError, CooperativeBandits, DecisionLoop, GradientBandit, load
from evenhand.decisions import lessons
from evenhand.decisions.exploration import with_floor
from evenhand.decisions.fingerprint import fingerprint
from evenhand.decisions.judging import _Seen
from evenhand.decisions.status import Status


def at_once(does, loops):
    """Return what each loop's call returned or raised, all called at the same moment in threads."""
    together = threading.Barrier(len(loops))

    def one(loop):
        together.wait(30)
        try:
            return does(loop)
        except ConflictError as error:
            return error

    with ThreadPoolExecutor(len(loops)) as threads:
        return list(threads.map(one, loops))


def tell(loop, people, pays=lambda context: context[0] > 0):
    """Decide about people and tell what each decision earned: 1 for granting to whom pays, or refusing others."""
    made = loop.decide_many(people)
    loop.outcome_many(
        [
            {"id": one.id, "reward": float((one.action == "grant") == pays(person[1]))}
            for one, person in zip(made, people, strict=True)
        ]
    )


def test_learning_goes_on_from_what_was_learned_and_replays_bit_for_bit(where, begin, crowd, monkeypatch):
    monkeypatch.setattr(lessons, "PIECE", 150)
    loop = begin(where, held_out=0.2)
    assert loop.learn() is None
    tell(loop, crowd[:500])
    first = loop.learn()
    assert (first.version, first.parent) == (2, 1)
    assert 350 < first.rows < 450
    assert loop.learn() is None
    tell(loop, crowd[500:800])
    second = loop.learn()
    assert (second.version, second.parent) == (3, 2)
    assert loop.version == 1
    found = loop.replay()
    assert (found.same, found.policies, found.decisions, found.missing) == (True, 3, 800, {})


def test_learning_makes_policies_better_and_promotion_needs_evidence(begin, crowd, tmp_path):
    loop = begin(tmp_path / "log", explore=0.2, held_out=0.5, max_flip=0.5)
    tell(loop, crowd[:200], pays=lambda context: context[1] > 0)  # another world than the model learned
    loop.learn()
    few = loop.promote()
    assert not few.promoted
    assert any("not proven to be above" in reason for reason in few.against)
    assert loop.version == 1
    tell(loop, crowd[200:], pays=lambda context: context[1] > 0)
    for round in range(6):
        tell(loop, [(f"{id} {round}", *rest) for id, *rest in crowd], pays=lambda context: context[1] > 0)
    loop.learn()
    found = loop.promote(note="hourly")
    assert found.promoted, found
    assert 0 < found.gain[0] < found.gain[1]
    assert loop.version == found.version == 3
    assert loop.candidate() is None
    assert loop.decide("new", [0.0, 1.0, 0.0], "f").version == 3
    told = loop.policies()
    assert [policy["in_force"] for policy in told] == [False, False, True]
    assert told[2]["promotions"][0]["why"] == "promoted"
    assert told[2]["promotions"][0]["note"] == "hourly"
    assert told[2]["promotions"][0]["evidence"]["gain"] == list(found.gain)
    with DecisionLoop(None, tmp_path / "log") as reopened:
        assert reopened.version == 3
        assert reopened.replay().same


def test_bounds_hold_back_a_candidate_and_force_is_written_down(begin, crowd, tmp_path):
    loop = begin(tmp_path / "log", max_discrimination=0.0001, max_flip=0.0001)
    tell(loop, crowd[:300])
    loop.learn()
    found = loop.promote()
    assert not found.promoted
    assert {reason.split(" may")[0] for reason in found.against if "may" in reason} == {
        "its discrimination",
        "its flip rate",
    }
    assert loop.promote(force=True).promoted
    assert loop.policies()[1]["promotions"][0]["why"] == "forced"


def test_rolling_back_puts_the_version_before_in_force_and_forgets_no_lesson(begin, crowd, tmp_path):
    loop = begin(tmp_path / "log", held_out=0.0)
    with pytest.raises(ValueError, match="version 1 is what the log began with"):
        loop.rollback()
    for at in range(2):
        tell(loop, crowd[at * 100 : at * 100 + 100])
        loop.learn()
        loop.promote(force=True)
    assert loop.version == 3
    assert (loop.rollback(note="complaints"), loop.version) == (2, 2)
    assert loop.rollback() == 1
    assert loop.candidate() is None
    with pytest.raises(ValueError, match="none is before it"):
        loop.rollback()
    again = loop.learn()
    assert (again.version, again.parent, again.rows) == (4, 1, 200)
    assert [step["why"] for step in loop.policies()[0]["promotions"]] == ["start", "rolled back"]
    assert loop.replay().same


def test_deciding_goes_on_while_a_candidate_is_learned(begin, crowd, tmp_path, monkeypatch):
    loop = begin(tmp_path / "log")
    tell(loop, crowd[:300])
    during, learned = threading.Event(), lessons.learned

    def slow(*arguments):
        during.set()
        assert decided.wait(30)
        return learned(*arguments)

    decided = threading.Event()
    monkeypatch.setattr("evenhand.decisions.versions.learned", slow)
    thread = threading.Thread(target=loop.learn)
    thread.start()
    assert during.wait(30)
    tell(loop, crowd[300:400])
    decided.set()
    thread.join()
    rows = loop.policies()[1]["rows"]
    monkeypatch.undo()
    assert rows < 300  # what came meanwhile is for the next time
    assert loop.learn().rows > 0
    assert loop.replay().same


def test_a_deployed_ensemble_learns_with_its_networks(fitted, where, begin):
    model = load(fitted.model)
    loop = begin(where, model=model, held_out=0.0)
    people = [
        (
            f"{at}",
            {"skill": at / 50 - 1, "born": "01.02.1980", "job": "cook", "branch": 1, "sex": "fm"[at % 2]},
            None,
        )
        for at in range(100)
    ]
    made = loop.decide_many(people)
    loop.outcome_many([{"id": one.id, "label": "yes"} for one in made])
    assert loop.learn().rows == 100
    assert loop.promote(force=True).promoted
    before, after = (one.by_group["f"]["yes"] for one in (made[10], loop.decide("x", people[10][1])))
    assert after > before
    assert loop.replay().same


def test_a_bandit_without_groups_and_models_that_do_not_learn(begin, crowd, tmp_path):
    X = np.array([person[1] for person in crowd])
    y = np.where(X[:, 0] > 0, "grant", "refuse")
    loop = begin(tmp_path / "log", model=GradientBandit(random_state=0, epochs=2).fit(X, y), held_out=0.0)
    people = [(id, context, None) for id, context, _ in crowd[:100]]
    tell(loop, people)
    assert loop.learn().rows == 100
    assert loop.candidate().discrimination == (0.0, 0.0)
    assert loop.replay().same

    from evenhand import CooperativeBoosting

    groups = [person[2] for person in crowd]
    trees = CooperativeBoosting(rounds=3, random_state=0).fit(X, y, sensitive_features=groups)
    still = begin(tmp_path / "trees", model=trees)
    tell(still, crowd[:50])
    with pytest.raises(ValueError, match="CooperativeBoosting, which decides but can't learn"):
        still.learn()


def test_values_are_judged_on_decisions_whose_outcomes_had_their_time(begin, crowd, tmp_path):
    now = [0.0]
    loop = begin(tmp_path / "log", held_out=0.5, within=100.0, reveals={"grant"}, clock=lambda: now[0])
    loop.decide_many(crowd[:400])
    loop.learn()
    assert loop.candidate().outcomes == 0
    now[0] = 101.0
    assert loop.candidate().outcomes > 0


def test_outcomes_that_never_come_promote_nobody(begin, tmp_path):
    rng, now, n = np.random.default_rng(0), [0.0], 8000

    def applicants(n):
        return rng.normal(size=(n, 3)), rng.choice(["f", "m"], n)

    X, s = applicants(2000)
    wanted = np.where(X[:, 0] > -0.5, "grant", "refuse")
    generous = CooperativeBandits(epochs=5, random_state=0).fit(X, wanted, sensitive_features=s)
    loop = begin(
        tmp_path / "log", model=generous, reveals={"grant"}, unrevealed=0.3, within=10.0, explore=0.1,
        held_out=0.7, earns={"grant": {"repaid": 1, "defaulted": 0}}, clock=lambda: now[0],
    )  # fmt: skip
    X, s = applicants(n)
    chance = 1 / (1 + np.exp(-2 * X[:, 0] - 1))
    repaid, silent = rng.random(n) < chance, rng.random(n) < 0.8  # for no reason at all
    made = loop.decide_many([(str(at), X[at].tolist(), s[at]) for at in range(n)])
    loop.outcome_many(
        {"id": one.id, "label": "repaid" if repaid[at] else "defaulted"}
        for at, one in enumerate(made)
        if one.action == "grant" and not silent[at]
    )
    now[0] = 20.0
    loop.learn()

    def earns(policy):
        read = policy.read([str(x) for x in X.tolist()], s.tolist())
        said = with_floor(policy.probabilities(read.features), 0.1)[np.arange(n), read.groups]
        grants = said[:, policy.actions.index("grant")]
        return np.mean(grants * chance + (1 - grants) * 0.3)

    found = loop.promote()
    gain = earns(loop._versions.candidate()) - earns(loop.policy)
    assert found.gain[0] < gain < -0.04 < found.gain[1]
    assert not found.promoted
    assert f"{found.unknown} outcomes are not known, and may be any" in found.against[0]
    assert 0 < found.outcomes < found.unknown < found.people


@pytest.mark.parametrize("heard", [1.0, 0.5])
@pytest.mark.parametrize("explore", [0.0, 0.05])
def test_the_gain_of_a_candidate_is_inside_its_interval_at_every_look(begin, tmp_path, explore, heard):
    loop = begin(tmp_path / "log", explore=explore, reward_range=(-1, 1))
    wrong = 0
    for seed in range(100):
        rng, n = np.random.default_rng(seed), 1500
        x = rng.normal(size=n)
        old, new = (0.05 + 0.9 / (1 + np.exp(-4 * (x - bar))) for bar in (0.8, 0.0))
        granted = rng.random(n) < old
        paid = np.where(granted, np.where(x + rng.normal(size=n) > 0, 1.0, -1.0), 0.0)
        paid[(paid < 0) & (rng.random(n) > heard)] = np.nan  # some who default say nothing
        chance, other = np.where(granted, old, 1 - old), np.where(granted, new, 1 - new)
        seen = _Seen(loop.rules, loop._versions.policy, 0.3)
        looks = []
        for at in range(0, n, 100):
            now = slice(at, at + 100)
            seen.compare(other[now], chance[now], paid[now], chance[now], loop.rules)
            looks.append(seen.gain())
        wrong += any(not low <= 0.0559 <= high for low, high in looks)
    assert wrong <= 10  # a third of the risk is the gain's
    assert looks[-1][1] - looks[-1][0] < looks[0][1] - looks[0][0]
    assert (seen.known, seen.unknown) == (n - np.isnan(paid).sum(), np.isnan(paid).sum())


def test_two_loops_on_a_log_judge_promote_and_learn_from_the_policy_in_force(where, begin, crowd):
    loop = begin(where, held_out=0.5)
    other = begin(where, model=None)
    tell(loop, crowd[:200])
    loop.learn()
    loop.promote(force=True)
    tell(loop, crowd[200:400])
    assert other.learn().parent == 2
    assert loop.candidate() == other.candidate()
    assert other.candidate().incumbent == other.version == 2
    loop.rollback()
    tell(loop, crowd[400:600])
    assert other.learn().parent == 1
    assert Status(other).look()["version"] == 1


def test_of_two_promotions_or_rollbacks_at_once_one_is_refused(where, begin, crowd):
    loops = [begin(where, held_out=0.0), begin(where, held_out=0.0)]
    for at in range(2):
        tell(loops[0], crowd[at * 100 : at * 100 + 100])
        loops[0].learn()
        for done in at_once(lambda loop: loop.promote(force=True), loops):
            assert isinstance(done, ConflictError) or done is None or done.promoted
        assert [loop.version for loop in loops] == [at + 2] * 2
    numbers = [step["number"] for policy in loops[0].policies() for step in policy["promotions"]]
    assert sorted(numbers) == [1, 2, 3]

    going = loops[0]._versions
    with pytest.raises(ConflictError, match="has just been changed by somebody else"):
        going.put_in_force(2, "promoted", "", {}, after=2, now=0.0)  # 3 was the last
    assert going.policy.version == 3
    assert loops[0].rollback() == 2
    assert loops[1].rollback() == 1


def test_a_candidate_that_another_process_puts_in_force_meanwhile_decides_here_too(begin, crowd, tmp_path):
    mine, other = begin(tmp_path / "log", held_out=0.0), begin(tmp_path / "log", held_out=0.0)
    tell(mine, crowd[:100])
    mine.learn()
    candidate = mine._versions.candidate

    def late():
        other.promote(force=True)
        return candidate()

    mine._versions.candidate = late
    assert mine.promote(force=True) is None
    assert mine.version == other.version == 2


def test_a_candidate_that_learned_during_a_rollback_is_dropped(begin, crowd, tmp_path, monkeypatch):
    loop = begin(tmp_path / "log", held_out=0.0)
    tell(loop, crowd[:100])
    loop.learn()
    loop.promote(force=True)
    tell(loop, crowd[100:200])
    learned = lessons.learned

    def interrupted(*arguments):
        loop.rollback()
        return learned(*arguments)

    monkeypatch.setattr("evenhand.decisions.versions.learned", interrupted)
    with pytest.raises(ConflictError, match="a rollback while a candidate was learning"):
        loop.learn()
    monkeypatch.undo()
    again = loop.learn()
    assert (again.version, again.parent, again.rows) == (3, 1, 200)
    assert loop.replay().same


def test_a_fingerprint_tells_models_apart_and_survives_a_file(model, tmp_path):
    from evenhand import save

    again = load(save(model, tmp_path / "a.skops"))
    assert fingerprint(load(save(again, tmp_path / "b.skops"))) == fingerprint(again)
    again.policies_.b2[0, 0] = np.nextafter(again.policies_.b2[0, 0], np.float32(9))
    assert fingerprint(again) != fingerprint(load(tmp_path / "a.skops"))
