"""What benchmarks count and compare is what they say."""

import ast
import json
import operator
from pathlib import Path

import bench
import pytest
from bench import compare, draws, rule_changes, where, workers
from bench.coverage import required

from leak_atlas.engine import store
from leak_atlas.recipe import At, Data, Model, RandomHalves, Schedule, Setup, Signals

BITS = Setup(Data("digits-bits"), RandomHalves(200), Model("fc", 8), Schedule(2), 4).trained()


def test_each_main_takes_no_argument_and_declares_a_dictionary() -> None:
    """`python -m bench` calls each module's `main()` and joins what they return."""
    for path in Path(bench.__path__[0]).glob("[!_]*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name == "main":
                assert len(node.args.args) == len(node.args.defaults), path.name
                returned = ast.unparse(node.returns) if node.returns else ""
                assert returned.startswith("dict[str, "), path.name


def test_jobs_that_end_alike_are_counted_apart(
    own_outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainings = [state.training for state in BITS][:2]
    edited = BITS.rewind("head").signals()[:2]
    for step in (
        *trainings,
        *(Signals(At(one, 1)) for one in trainings),
        At(trainings[0]),
        *edited,
    ):
        store.write(
            step.key, step.record(), {}, {"finished": "now", "seconds": 2.0, "operations": 1.0}
        )
    monkeypatch.setattr(where, "priced", lambda kept: {})
    assert where.spent().groupby("kind")["core_s"].sum().to_dict() == {"Signals": 4.0, "Train": 4.0}


def test_only_the_effect_of_lira_may_cover_less() -> None:
    assert required("AUC of online LiRA, 6 targets, shift 0.5, design effect 1") == 0.0
    assert (
        required("AUC of RMIA, 6 targets, shift 0.5, design effect 1")
        == required("mean of 4 units")
        == 0.92
    )


def test_a_process_that_ends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "plainly", operator.is_)  # it answers nothing
    with pytest.raises((EOFError, OSError)), workers.machine(BITS[0].training):
        pass


def test_two_runs_are_compared_claim_by_claim(tmp_path: Path) -> None:
    def run(name: str, *claims: tuple[str, float, str]) -> Path:
        rows = []
        for claim, value, verdict in claims:
            row = {"name": claim, "text": claim, "value": value, "verdict": verdict}
            rows.append(row | {"low": value - 0.1, "high": value + 0.1, "headline": False})
        path = tmp_path / name
        path.write_text(json.dumps([{"notebook": "layers/one", "claims": rows}]))
        return path

    first = run("first", ("same", 0.2, "holds"), ("moved", 0.05, "undecided"), ("gone", 1, "holds"))
    second = run("second", ("same", 0.2, "holds"), ("moved", 0.2, "holds"), ("new", 1, "holds"))
    both = compare.pairs(first, second)
    assert [pair.equal for pair in both] == [True, False]
    assert [pair.inside for pair in both] == [True, False]
    assert [round(pair.shift, 6) for pair in both] == [0, 1.5]
    text = compare.page(both)
    assert "1 of 2 claims have the same numbers" in text
    assert "1 verdicts change; 0 of them" in text
    assert "| layers/one: moved | undecided: 0.050 [−0.050, 0.150] | holds: 0.200" in text


def test_draws_are_pooled_by_their_own_scatter() -> None:
    def draw(value: float, verdict: str) -> draws.Claims:
        claim = {"text": "it rises", "rule": "rise > 0", "value": value, "verdict": verdict}
        return {"rises": claim | {"low": value - 0.4, "high": value + 0.4}}

    *_, row = draws.pooled(draw(0.1, "undecided"), [draw(0.2, "undecided"), draw(0.3, "holds")])
    # Student's t with two degrees of freedom: 4.3027 * 0.1 / sqrt(3) = 0.2484
    assert "0.200 [−0.048, 0.448]" in row
    assert "0.100; 0.400" in row
    assert "2 undecided, 1 holds" in row


def test_the_tables_of_draws_are_those_of_the_kept_and_published_claims() -> None:
    document = draws.DOCUMENT.read_text()
    assert draws.renewed(document) == document, "python -m bench.draws makes them anew"


def test_a_run_without_claims_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no page with claims"):
        draws.keep("113", tmp_path)


def test_a_rule_that_changed_is_listed_with_both_verdicts_and_a_sentence_is_not() -> None:
    first = {
        "text": "A rises",
        "rule": "AUC >\u00a00.5",
        "headline": True,
        "verdict": "holds",
        "inert": [],
        "value": 0.6,
        "low": 0.55,
        "high": 0.65,
    }
    same = first | {"text": "In other words", "value": 0.64}
    listed = rule_changes.changes
    assert listed({"a": first}, {"a": same}) == []
    assert listed({"a": first}, {"a": first | {"rule": "AUC <\u00a0−0.5", "value": -0.6}}) == []
    for new, what in (
        ({"rule": "AUC >\u00a00.7", "verdict": "fails"}, "border 0.5 → 0.7"),
        ({"headline": False}, "is no headline any more"),
        ({"inert": ["it acts"], "verdict": "inert"}, "a check fails now"),
        ({"value": 0.7}, "value outside its first interval"),
        ({"value": 0.6, "verdict": "undecided"}, "new run"),
    ):
        now = first | new
        assert listed({"a": first}, {"a": now}) == [("A rises", what, "holds", now["verdict"])]
    failed = first | {"verdict": "inert", "inert": ["it acts"]}
    passes = "the check that failed passes or was replaced"
    assert listed({"a": failed}, {"a": first}) == [("A rises", passes, "inert", "holds")]
    changed = listed({"a": first}, {"b": same})
    assert changed == [
        ("In other words", "added as a headline", "–", "holds"),
        ("A rises", "removed", "holds", "–"),
    ]


def test_a_parameter_that_changed_is_listed() -> None:
    cells = []
    for tag, source in (
        ("parameters", "epochs = 2  # of all\nwidth = 8"),
        ("other", "width = 1"),
        ("injected-parameters", "epochs = 4"),
    ):
        cells.append({"metadata": {"tags": [tag]}, "source": [source]})
    values = rule_changes.parameters(json.dumps({"cells": cells}))
    assert values == {"epochs": 4, "width": 8}
    assert rule_changes.resized({"epochs": 2, "gone": 1}, values) == [("epochs", "2", "4")]
