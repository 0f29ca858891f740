"""What is computed without a network: whether a design is fair."""

from __future__ import annotations

import numpy as np

from leak_atlas import audit
from leak_atlas.data import honesty, readers
from leak_atlas.data.designs import Role
from leak_atlas.engine.compute import Arrays, Of, compute
from leak_atlas.models.subject import roles
from leak_atlas.recipe import SelfAudit


@compute.register(SelfAudit)
def _(step: SelfAudit, of: Of) -> Arrays:
    """`duplicates (rows,)`; `blind (3,)`: the blind classifier's AUC on the first row that has both
    sides.
    """
    role, index, labels = roles(step.data, step.design, step.rows)
    x = readers.load(step.data.name, step.data.pixels).x[index]
    halved = next((row for row in role if (row == Role.NONMEMBER).any()), None)
    found = {"duplicates": np.asarray([honesty.duplicates(x, row) for row in role])}
    if halved is not None:
        pool = np.isin(halved, (Role.MEMBER, Role.NONMEMBER))
        member = halved[pool] == Role.MEMBER
        auc = audit.auc_interval(*honesty.blind(x[pool], member, labels[pool], step.design.seed))
        found["blind"] = np.asarray([auc.value, auc.low, auc.high])
    return found
