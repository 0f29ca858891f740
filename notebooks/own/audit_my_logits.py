# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Who can be told to be in my target's training data?
#
# Logits of your own network, and of its shadows if you have some, go through every attack that reads logits: thresholds on
# the target's own signals, LiRA, RMIA, BASE, and a network that learns from the shadows. Set `file`, or run
# `.venv/bin/python -m lib.audit mine.npz`. Without a file small networks are trained here, as an example.
#
# An `.npz` holds arrays by these names (N samples, C classes):
#
# - `target` (N, C), `labels` (N,), `member` (N,): logits of the model under audit, classes, whether it trained on a sample;
# - `shadows` (M, N, C), `in_shadow` (M, N), both or neither: the same of M networks trained as the target was, each on a random part of these samples;
# - `population` (Z, C), `population_labels` (Z,), `population_shadows` (M, Z, C), all or none: of samples that no model trained on, for RMIA.
#
# Where A queries of each sample were made, (N, A, C) stands in place of (N, C), the plain query first; LiRA and RMIA use all.
#
# Members and non-members have to be drawn from one distribution: else an attack tells the distributions apart.

# %% tags=["parameters"]
file = ""  # your .npz, as seen from this folder; "": the example
name = ""  # of the report in outputs/runs/own; "": the file's
rates = [0.01, 0.001]  # false positive rates at which true positive rates are shown
found_at = 0.01  # false positive rate at which members count as found

# %%
from pathlib import Path

from lib import audit, report
from lib.own import findings, logits

arrays = logits.read(Path(file)) if file else logits.example()
found = findings.attack(arrays)
place = found.save(logits.place(name or Path(file).stem or "example"), found_at)
found.said(found_at)

# %% [markdown]
# ## Every attack
# The target is one, so intervals are over samples: what other members and non-members would have given of this same
# network. Another training of it may leak otherwise. LiRA pools its variance over samples; from 30 shadows on each side
# it is shown with each sample's own variance too.

# %%
outside = int((~arrays.member).sum())
report.table(
    found.rows(rates),
    caption=f"{outside:,} non-members: no false positive rate below {audit.resolution(outside):.2%} can be seen",
)

# %%
report.roc(found.roc(), title=f"{found.best[:1].upper()}{found.best[1:]} has the largest area: {found.auc[found.best].value:.3f}")

# %% [markdown]
# ## Who is found
# The members whose score lies above that of all non-members but the share `found_at`, by the attack that finds most.

# %%
strongest = found.strongest(found_at)
chance = f"guessing would find {found_at * arrays.member.sum():,.0f}"
report.table(
    found.most(found_at),
    caption=f"{strongest}, at {100 * found_at:g} % FPR: {found.exposed(strongest, found_at).sum():,} members are found, {chance}. The surest first, at most 20",
)

# %%
print(f"All members that {strongest} finds, by index:\n{found.listed(found_at)}")

# %% [markdown]
# **Caveat.** That no attack finds a member does not say that none can. The strongest attack was picked after its
# scores were seen; the sentence at the top pays for that in its test, the intervals in the table do not. SAMIA and
# BlindMI ask the target more than logits hold and are left out.
#
# Scores of all samples are in the CSV beside this page: `index`, `label`, `member`, `found_by` (how many attacks find
# it), and a column an attack, larger = more likely member.

# %%
report.table(
    [
        {"array": each, "shape": shape, "holds": what, "here": str(getattr(getattr(arrays, each), "shape", "–"))}
        for each, (shape, what) in logits.ARRAYS.items()
    ],
    caption=f"What was audited; scores are in {place.name}",
)
