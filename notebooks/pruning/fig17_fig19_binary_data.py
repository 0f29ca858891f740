# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # On binary data, does PPB reduce the attack accuracy of SAMIA to that of guessing?
#
# **The paper.** Yuan & Zhang (2022), Fig. 17 and 19: their defence PPB "can reduce the attack
# accuracy to around 50% (random guessing accuracy)" (section 6.3.2). The figures include binary
# data. We read "around 50%" as below 0.53.
#
# **Setup.** The features of a sample are bits. A fully connected network is pruned (L1 unstructured
# removes single weights). It is fine-tuned with PPB, with DP-SGD, or without a defence (*Base*).
# PPB sorts the probabilities of each member's posterior by size. It penalizes the divergence
# between the sorted posteriors of two members; the number after PPB is the weight of the penalty. A
# *non-adaptive* attack learns from shadow models of Base, an *adaptive* attack from shadow models
# with the target's defence. On Base, both are the same attack. The *net gain* of a defence is the
# fall of SAMIA's attack accuracy minus the fall of test accuracy, both compared with Base.
#
# **Second question.** Is PPB more accurate than early stopping at the same leakage?
#
# **Controls.**
#
# 1. *The largest weight of PPB* that the paper tries (decides the first question). In `quick`,
#    networks with this weight still fit most of their members (see the table).
# 2. *Early stopping* (decides the second question): Base trained for fewer epochs before pruning,
#    or fine-tuned for fewer after it. The test accuracy with PPB is compared with that of Base
#    stopped where adaptive LiRA has the same AUC (*at matched AUC*).

# %% tags=["parameters"]
data = "digits-bits"  # data set of bits (leak-atlas data); the paper: Location, Purchase, Texas
width = 256  # units of the first hidden layer (paper: 256)
pool = 1200  # samples in all: one half for the targets, one half for the attacker (paper: all)
dev = 60  # samples of each half kept for `patience`; half of the rest are members (paper: a tenth)
targets = 10  # target networks; each draws its members from the targets' half (paper: 1)
shadows = 5  # shadow models; each draws its members from the attacker's half (paper: 5)
sparsity = 0.6  # share of the weights that is removed (paper: .6)
ppb = 4.0  # weight of PPB's penalty (paper: 1, 2, 4, 8, 16; published code: 4)
strong_ppb = 16.0  # the largest weight (paper: 16)
noise = 1.0  # noise multiplier of DP-SGD (paper: .01 to 100; published code: .1)
dense_stops = [3, 6, 12]  # epochs of the dense network, then pruned: early stopping (ours)
stops = [1, 2, 4, 8]  # epochs after pruning at which Base is stopped (ours)
epochs = 24  # of the dense network, at most (published code: 50)
retrain_epochs = 12  # epochs after pruning, at most (published code: half of `epochs`)
patience = None  # epochs without a better dev accuracy before the end (paper: 5, of the dev loss)
batch = 32  # samples a step (paper: 128)
lr = 0.002  # learning rate of Adam (paper: 0.001)
decay = "constant"  # schedule of the learning rate over the epochs (paper: not named)
attack_epochs = 60  # of the attack networks (paper: 100)
attack_optimizer = "adam"  # of the attack networks (paper: sgd)
attack_lr = 0.001  # learning rate of attack networks (paper: 0.01 for SGD; published code: 0.001)
learnt = 0.6  # least test accuracy required of the dense network (ours)
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0, 1, 7]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import audit, lab, report
from leak_atlas.recipe import DPSGD, PPB, SAMIA, Data, LiRA, Model, PruningStudy, Schedule

weak, strong = f"PPB {ppb:g}", f"PPB {strong_ppb:g}"  # PPB with this weight
ppb_adaptive = f"{weak} (adaptive attack)"
paired = "the same pruned networks and shadow models; paired over targets"
claims = report.claims(
    report.Claim(
        "ppb_hides",
        f"On binary data, with {strong}, non-adaptive SAMIA has an attack accuracy below 0.53 "
        "(guessing: 0.5)",
        fails=f"On binary data, with {strong}, non-adaptive SAMIA has an attack accuracy above "
        "0.53",
        quantity="attack accuracy of SAMIA, which does not know the defence, on networks "
        f"fine-tuned with the defence PPB, weight {strong_ppb:g}",
        below=0.53,
        margin=0.02,
        paper="Fig. 17",
        quote="reduce the attack accuracy to around 50% (random guessing accuracy)",
        section="6.3.2",
        control="the same attack on Base",
        headline=True,
    ),
    report.early_stopping_claim(
        "beats_stopping", f"networks with {weak}", attack="adaptive LiRA", headline=True
    ),
    report.Claim(
        "ppb_is_cheap",
        f"On binary data {weak} costs less than 5 points of test accuracy",
        quantity=f"test accuracy: {weak} minus Base",
        above=-0.05,
        margin=0.02,
        paper="Fig. 17",
        quote="while not degrading the prediction accuracy too much",
        section="6.3.2",
        control=paired,
    ),
    report.Claim(
        "ppb_below_base",
        f"On binary data {weak} lowers the attack accuracy of adaptive SAMIA",
        quantity=f"attack accuracy of adaptive SAMIA: {weak} minus Base",
        below=0.0,
        margin=0.02,
        paper="Fig. 19",
        quote="PPB reduces the accuracy of adaptive attacks compared to the attacks on the pruned "
        "model without defenses",
        section="6.3.3",
        control="shadow models with each target's own defence; paired over targets",
    ),
    report.Claim(
        "dp_is_poor",
        f"On binary data the net gain of DP-SGD is lower than that of {weak}",
        quantity="net gain (fall of non-adaptive SAMIA's attack accuracy minus fall of test "
        f"accuracy, both from Base): DP-SGD minus {weak}",
        below=0.0,
        margin=0.02,
        paper="Fig. 17",
        quote="we observe DP can hardly balance this utility-privacy tradeoff",
        section="6.3.2",
        control=paired,
    ),
    regime={
        "dense member accuracy": 0.95,
        "dense test accuracy": learnt,
        "member accuracy of Base": 0.95,
    },
)
claims

# %% [markdown]
# ## Test accuracy and attack accuracy (Fig. 17 and 19)
# A point further down leaks less, a point further right is more accurate. Guessing has an attack
# accuracy of 0.5. The attack is adaptive only where the legend says so. The fine-tuning with each
# defence starts from the same pruned networks.

# %%
study = PruningStudy(
    Data(data, joined=True),
    Model("fc", width),
    Schedule(epochs, batch, "adam", lr, decay=decay, patience=patience),
    fine_tuning=retrain_epochs,
    pool=pool,
    dev=dev,
    targets=targets,
    shadows=shadows,
    seed=seed,
    precision=precision,
)
pruner = "L1 unstructured"
variants = {"dense": study.dense, "Base": study.pruned(pruner, sparsity)}
variants[weak] = study.pruned(pruner, sparsity, PPB(ppb))
variants[strong] = study.pruned(pruner, sparsity, PPB(strong_ppb))
variants["DP-SGD"] = study.pruned(pruner, sparsity, DPSGD(noise))
variants[ppb_adaptive] = variants[weak]  # the same networks under another attack
# Against these variants, an attack learns from shadow models of Base.
non_adaptive = dict.fromkeys((weak, strong, "DP-SGD"), study.shadow_models(variants["Base"]))

# %%
removed = {(pruner, sparsity): study.removed(variants["Base"])}
attacked = list(variants)[1:]  # not the dense networks
comparison = lab.compare(
    variants,
    {
        "SAMIA": SAMIA(epochs=attack_epochs, lr=attack_lr, optimizer=attack_optimizer),
        "LiRA": LiRA("offline_cdf"),
    },
    targets=targets,
    only={"SAMIA": attacked},
    shadows=non_adaptive,
    checkpoints={"Base": study.pruned_early(pruner, sparsity, dense_stops, stops)},
    also=removed,
)

# %%
accuracies = {name: comparison.estimate(name, "SAMIA", "accuracy") for name in attacked}
report.tradeoff(
    comparison.plane({name: [name] for name in attacked}, "SAMIA", "accuracy"),
    facet=None,
    reference=None,
    title=f"Non-adaptive SAMIA's attack accuracy is {accuracies[strong].value:.2f} with {strong}, "
    f"{accuracies['Base'].value:.2f} with Base",
    xlabel="test accuracy",
    ylabel="attack accuracy of SAMIA",
)

# %% [markdown]
# ## PPB compared with early stopping
# The points on the line are Base, stopped after fewer epochs or trained to the end. A defence to
# the right of the line is more accurate than early stopping at the same AUC.

# %%
lines = {"Base, by epoch": [*comparison.checkpoints["Base"], "Base"], ppb_adaptive: [ppb_adaptive]}
matched = comparison.early_stopping(ppb_adaptive, "LiRA")
report.tradeoff(
    comparison.plane(lines, "LiRA"),
    facet=None,
    reference_label="guessing",
    title=f"At matched AUC, {weak} {report.compared_accuracy(matched)}",
    xlabel="test accuracy",
    ylabel="AUC of adaptive LiRA",
)

# %%
rows = []
for variant in attacked:
    row = {"network": variant}
    row["member accuracy"] = comparison.estimate(variant, "", "member accuracy")
    row["test accuracy"] = comparison.accuracy(variant)
    row["attack accuracy of SAMIA"] = accuracies[variant]
    row["AUC of LiRA"] = comparison.estimate(variant, "LiRA")
    rows.append(row)
report.table(
    rows, caption=f"Mean over {targets} targets; only the attacks of the last row are adaptive"
)

# %% [markdown]
# ## Verdicts

# %%
dp_net_gain = comparison.gain_minus_cost(["DP-SGD"], ["Base"], "SAMIA")
ppb_net_gain = comparison.gain_minus_cost([weak], ["Base"], "SAMIA")
manipulation_checks = comparison.pruned_as_asked(removed)
manipulation_checks["SAMIA finds members of Base"] = accuracies["Base"].low > 0.53
member_accuracy_fall = comparison.contrast("Base", weak, metric="member accuracy")
ppb_checks = manipulation_checks | {f"{weak} lowers the accuracy on members": member_accuracy_fall}
strong_falls = {
    "fall of member accuracy": comparison.contrast("Base", strong, metric="member accuracy"),
    "fall of the AUC of LiRA": comparison.contrast("Base", strong, "LiRA"),
}
# The check is the AUC: in `quick`, the interval of the fall of member accuracy contains 0.
strong_auc_fall = strong_falls["fall of the AUC of LiRA"]
strong_checks = manipulation_checks | {f"{strong} lowers the AUC of LiRA": strong_auc_fall}
dp_auc_fall = comparison.contrast("Base", "DP-SGD", "LiRA")

# %%
report.judge(
    claims,
    ppb_hides=accuracies[strong],
    beats_stopping=matched,
    ppb_is_cheap=comparison.contrast(weak, "Base", metric="test accuracy"),
    ppb_below_base=comparison.contrast(ppb_adaptive, "Base", "SAMIA", "accuracy"),
    dp_is_poor=audit.paired_difference(dp_net_gain, ppb_net_gain),
    notes={"ppb_hides": report.listed(strong_falls)},
    checks={
        "ppb_hides": strong_checks,
        "beats_stopping": ppb_checks,
        "ppb_is_cheap": ppb_checks,
        "ppb_below_base": ppb_checks,
        "dp_is_poor": ppb_checks | {"DP-SGD lowers the AUC of LiRA": dp_auc_fall},
    },
    regime={
        "dense member accuracy": comparison.estimate("dense", "", "member accuracy"),
        "dense test accuracy": comparison.accuracy("dense"),
        "member accuracy of Base": comparison.estimate("Base", "", "member accuracy"),
    },
)

# %% [markdown]
# **Limits.** All targets draw their members from the same half of the pool, and each attack learns
# from one set of shadow models. A non-adaptive attack can miss members that an adaptive one
# identifies. The dense network is trained without DP-SGD, so DP-SGD gives no privacy bound here. We
# try two weights of PPB, one noise multiplier of DP-SGD and, as in the paper, one pruner.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
