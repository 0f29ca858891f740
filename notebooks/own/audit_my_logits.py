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
# The first output is the answer. The last section lists the arrays that the audit needs. Set `file`
# below, or run `leak-atlas audit mine.npz`.

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
# ## AUC and TPR of each attack
# A guess has an AUC of .5. The TPR at an FPR is the share of members that an attack identifies while
# it mistakes that share of non-members for members. Intervals are over samples of this one target:
# the same network trained again may leak more or less. The figure shows the loss and the attacks
# with the largest AUCs.

# %%
report.table(audited.rows(rates), caption=audited.caption())

# %%
report.roc(audited.roc(), title=audited.roc_title(), narrow=True)

# %% [markdown]
# ## Members that the strongest attack identifies
# An attack identifies a member whose score is larger than that of all but a share `found_at` of the
# non-members. The strongest attack has the largest TPR at this FPR. The CSV file of this page has
# all samples: `found_by` counts the attacks that identify a sample.

# %%
members = audited.most(found_at)
report.table(members, caption=audited.most_caption(found_at))

# %% [markdown]
# ## Limits
# An attack that identifies nobody does not prove that none can. Members and non-members have to be
# drawn from one distribution; otherwise an attack separates the distributions. The answer at the
# top is corrected for the number of attacks, the intervals in the table are not. SAMIA and BlindMI
# need more than logits and are left out. RMIA's score is the paper's: the share of the population
# that a sample exceeds.

# %% [markdown]
# ## The arrays that the audit needs
# An `.npz` with the arrays below. N samples, C classes, M shadow models, Z samples of a population
# that no model trained on. `target`, `labels` and `member` are required. A shadow model is trained as
# the target was, on a random part of these samples, drawn without regard to `member`.
# (N, A, C) stands for A queries of each sample, the plain one first; LiRA and RMIA use all.
#
# The page's folder also has a CSV with all scores (one column for each attack, larger = more likely
# a member) and a JSON with all numbers.

# %%
arrays = logits.rows(audited.arrays)
report.table(arrays, caption="The arrays of this audit")
