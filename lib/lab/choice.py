"""Which strength of a defence a model takes, from the stored signals of its candidates."""

from __future__ import annotations

import numpy as np

from lib import audit, store
from lib.compute import Arrays, Of, compute
from lib.data.designs import Role
from lib.recipe import Choose


@compute.register(Choose)
def _(step: Choose, of: Of) -> Arrays:
    read = [store.read(signals.key).arrays for signals in step.parents()]
    role = read[0]["role"]
    looked_at = np.isin(role, (Role.MEMBER, Role.DEV))
    found = audit.choose(
        np.stack([arrays["accuracy_dev"] for arrays in read]),
        np.stack([arrays["views"][looked_at, 0] for arrays in read]),
        role[looked_at] == Role.MEMBER,
        step.slack,
    )
    return {"chosen": np.asarray(found.chosen), "accuracy": found.accuracy, "leak": found.leak}
