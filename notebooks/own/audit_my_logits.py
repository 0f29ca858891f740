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
# The first output is the answer; the last section says what to bring. Set `file` below, or run
# `leak-atlas audit mine.npz`.

# %% tags=["parameters"]
file = ""  # your .npz, as seen from this folder; "": an example is trained here
name = ""  # of the report in outputs/runs/own; "": the file's
rates = [0.01, 0.001]  # false positive rates (FPR) at which true positive rates (TPR) are shown
found_at = 0.01  # FPR at which an attack finds a member: the share of non-members that it mistakes

# %%
from leak_atlas import report
from leak_atlas.own import logits, page

audited = page.audit_file(file, name, found_at, rates)
audited.said(found_at)

# %% [markdown]
# ## How well does each attack identify members?
# An AUC of .5 is guessing. The TPR at an FPR is the share of members that an attack finds while it
# mistakes that share of non-members for members. Intervals are over samples: what other members and
# non-members would have given of this target. Another training of it may leak otherwise. The
# figure shows the loss and the attacks with the largest AUCs.

# %%
report.table(audited.rows(rates), caption=audited.caption())

# %%
report.roc(audited.roc(), title=audited.roc_title(), narrow=True)

# %% [markdown]
# ## Which members are found?
# An attack finds a member whose score is larger than that of all non-members but the share
# `found_at`. The list is that of the attack with the largest TPR there. The CSV beside this page has
# all samples: `found_by` counts the attacks that find one.

# %%
members = audited.most(found_at)
report.table(members, caption=audited.most_caption(found_at))

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
arrays = logits.rows(audited.arrays)
report.table(arrays, caption="The arrays of this audit")
