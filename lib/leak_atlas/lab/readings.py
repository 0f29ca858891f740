"""What is computed without a network: whether a design is fair."""

from __future__ import annotations

import numpy as np

from leak_atlas import audit
from leak_atlas.data import honesty, readers
from leak_atlas.data.designs import Role, in_pool
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
    counts = [honesty.duplicates(x, row) for row in role]
    results = {"duplicates": np.asarray(counts)}
    halved = role[(role == Role.NONMEMBER).any(axis=1)]
    if len(halved):
        first = halved[0]
        pool = in_pool(first)
        member = first[pool] == Role.MEMBER
        scores, judged = honesty.blind(x[pool], member, labels[pool], step.design.seed)
        auc = audit.auc_interval(scores, judged)
        results["blind"] = np.asarray([auc.value, auc.low, auc.high])
    return results
