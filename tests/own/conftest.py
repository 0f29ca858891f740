"""What tests of users' logits and models share."""

import pytest

from leak_atlas import own
from leak_atlas.own import attacks
from tests.own.arrays import simulated

EVERY = attacks.attackers


def without_network(views: int) -> dict[str, attacks.Shadowed]:
    return {name: one for name, one in EVERY(views).items() if not one.attacker.is_trained}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the attack that learns, which takes seconds and has no orientation of its own."""
    monkeypatch.setattr(attacks, "attackers", without_network)


@pytest.fixture(scope="session")
def leaky() -> own.Result:
    """The audit of a target that leaks much, without the attack that learns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attacks, "attackers", without_network)
        return own.audit(simulated(1.5))
