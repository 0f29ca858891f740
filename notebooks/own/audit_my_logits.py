# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does my model leak who is in its training data?
#
# Can an attack that reads logits identify the samples on which my model, the target, was trained?
# The first output answers; the last section says what to bring. Nothing is to be copied: set `file`
# below, or run `leak-atlas audit mine.npz`.

# %% tags=["parameters"]
file = ""  # your .npz, as seen from this folder; "": an example is trained here
name = ""  # of the report in outputs/runs/own; "": the file's
rates = [0.01, 0.001]  # false positive rates (FPR) at which true positive rates (TPR) are shown
found_at = 0.01  # FPR at which an attack finds a member: the share of non-members that it mistakes

# %%
from pathlib import Path

from leak_atlas import report
from leak_atlas.own import findings, logits

arrays = logits.read(Path(file)) if file else logits.example()
result = findings.attack(arrays)
place = logits.place(name or Path(file).stem or "example")
result.save(place, found_at, rates, file=Path(file).name or "example")
result.said(found_at)

# %% [markdown]
# ## How well does each attack identify members?
# AUC .5 is guessing. TPR at an FPR is the share of members that an attack finds while it mistakes
# that share of non-members for members. Intervals are over samples: what other members and
# non-members would have given of this target. Another training of it may leak otherwise. The
# figure has the loss and the attacks with the largest AUCs.

# %%
report.table(result.rows(rates), caption=result.caption())

# %%
best = result.best[:1].upper() + result.best[1:]
area = result.auc[result.best].value
report.roc(result.roc(), title=f"{best} has the largest AUC: {area:.3f}", narrow=True)

# %% [markdown]
# ## Which members are found?
# An attack finds a member whose score is larger than that of all non-members but the share
# `found_at`. The list is that of the attack with the largest TPR there. The CSV beside this page has
# all samples: `found_by` counts the attacks that find one.

# %%
strongest, at = result.strongest(found_at), f"{100 * found_at:g} % FPR"
found = int(result.exposed(strongest, found_at).sum())
report.table(
    result.most(found_at),
    caption=f"{strongest} at {at} finds {found:,} members. Listed: the largest scores, at most 20",
)

# %% [markdown]
# ## Limits
# An attack that finds nothing does not prove that none can. Members and non-members have to be
# drawn from one distribution; otherwise an attack separates the distributions. The answer at the
# top is corrected for the number of attacks, the intervals in the table are not. SAMIA and BlindMI
# need more than logits. RMIA's score is the paper's: the share of the population that a sample
# exceeds. With ties ordered by the ratio, RMIA online with one query has exactly the order of BASE.

# %% [markdown]
# ## What to bring
# An `.npz` with the arrays below. N samples, C classes, M shadow models, Z samples of a population
# that no model trained on. Needed are `target`, `labels` and `member`. A shadow model is trained as
# the target was, on a random part of these samples, drawn without regard to `member`.
# (N, A, C) stands for A queries of each sample, the plain one first; LiRA and RMIA use all.
#
# Beside this page lie a CSV with all scores (a column an attack, larger = more likely member) and a
# JSON with all numbers.

# %%
report.table(
    logits.rows(arrays),
    caption=f"The arrays of this audit; scores are in {place.name}",
)
