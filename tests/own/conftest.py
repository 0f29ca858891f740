"""What tests of users' logits and models share."""

import pytest

from leak_atlas import own
from leak_atlas.own import findings
from tests.own.arrays import simulated

EVERY = findings.attackers


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the attack that learns, which takes seconds and has no orientation of its own."""
    monkeypatch.setattr(findings, "attackers", without_network)


@pytest.fixture(scope="session")
def leaky() -> own.Result:
    """The audit of a target that leaks much, without the attack that learns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(findings, "attackers", without_network)
        return own.audit(simulated(1.5))


def without_network(views: int) -> dict[str, tuple[findings.Attacker, findings.Needs]]:
    return {name: pair for name, pair in EVERY(views).items() if not pair[0].learns}
