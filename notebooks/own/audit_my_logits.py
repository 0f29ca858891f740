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
# Can an attack that reads logits identify the samples on which my model, the *target*, was trained?
#
# **To audit your model**, save its logits for members and other samples,
# `np.savez("mine.npz", target=logits, labels=labels, member=trained_on)`, set `file` and run all
# cells. The last section lists all arrays.

# %% tags=["parameters"]
file = ""  # CHANGE THIS: path of your .npz, from this folder; "": an example is trained here
name = ""  # of the report in outputs/runs/own; "": the file's
rates = [0.01, 0.001]  # false positive rates (FPR) at which the table shows true positive rates
found_at = 0.01  # FPR of the answer: the share of non-members that an attack mistakes for members

# %%
from leak_atlas import report
from leak_atlas.own import logits, page

audited = page.audit_file(file, name, found_at, rates)
audited.said(found_at)

# %% [markdown]
# ## AUC and TPR of each attack
# A guess has an AUC of .5. The true positive rate (TPR) is the share of members that an attack
# identifies. Intervals are over samples of this one target and are not corrected. The same network
# trained again may leak more or less.

# %%
report.table(audited.rows(rates), caption=audited.caption())

# %% [markdown]
# The figure shows the attack on the loss and the four other attacks with the largest AUCs. Samples
# with the same score are called members together, so a curve can have steps. The AUC counts such
# ties as one half.

# %%
report.roc(audited.roc(), title=audited.roc_title(), narrow=True)

# %% [markdown]
# ## Members that the strongest attack identifies
# The *strongest attack* has the largest TPR at an FPR of `found_at`: at most this share of the
# non-members has a score above the threshold. The members above the threshold are identified.
# `index` is the sample's row in your arrays.
#
# The folder `outputs/runs/own` has a JSON with all numbers. Its CSV has all scores (larger = more
# likely a member) and the number of attacks that identify each member (`found_by`).

# %%
members = audited.most(found_at)
report.table(members, caption=audited.most_caption(found_at))

# %% [markdown]
# ## Limits
# The answer is yes if the largest AUC is significantly above .5, corrected for the number of
# attacks. Non-members must be drawn from the members' distribution; otherwise an attack separates
# the distributions. If no attack here identifies members, a stronger attack still may. SAMIA and
# BlindMI need more than logits and are left out.

# %% [markdown]
# ## The arrays that the audit needs
# `target`, `labels` and `member` are required. N is the number of samples, C of classes, M of
# shadow models. Z is the number of samples in a *population*: samples that no model trained on. A
# *shadow model* is trained as the target was, on a random part of the N samples, drawn without
# regard to `member`. With several queries of a sample, logits are (N, A, C): A queries, the plain
# one first. LiRA, RMIA and the attacks without shadow models use all of them.

# %%
arrays = logits.rows(audited.arrays)
report.table(arrays, caption="The arrays of this audit")
