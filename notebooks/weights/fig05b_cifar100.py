# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does HAMP need CWRF to converge?
#
# **The paper.** Fang & Kim (2026), Fig. 5b (CIFAR-100): "the model solely trained with HAMP fails
# to converge", and "the model can achieve better utility when it is trained with both HAMP and
# CWRF" (section 5.2).
#
# **Setup.** CWRF trains a network with cross-entropy, rewinds and freezes the 5 % of its weights
# with the highest vulnerability, and retrains the others with a defence: RelaxLoss (keeps the loss
# near a target) or HAMP (asks for outputs of high entropy; its training part alone, as in the
# paper). *Vulnerability* sums |gradient × weight| over updates that fit members and forget
# non-members. *From scratch* means without CWRF, for the number of epochs of no defence. We say
# that a network *converges* if it reaches 80 % of the undefended test accuracy. The attacks are
# LiRA and RMIA.
#
# **Controls.**
#
# 1. *HAMP's entropy*: whether its outputs reach the entropy that it asks for (table's caption).
# 2. *Nothing rewound*: each defence retrains all weights, for the same number of epochs.
# 3. *Early stopping* of ordinary training *at matched AUC*: test accuracies are compared where LiRA
#    has the same AUC on both networks.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: CIFAR-100
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (64 by the architecture)
pool = 600  # samples from which each network draws half (paper: lost)
dev = 300  # samples outside the pool; unused here, kept so that pages share networks
reference = 300  # non-members outside the pool, for the score alone (paper: lost)
test = 600  # test samples (paper: not stated)
r = 0.05  # share of the weights that is rewound (paper: several values, lost)
balance = 0.5  # lambda: weight of the divergence in the score, chosen beforehand (paper: lost)
score_steps = 30  # updates over which a score is summed (paper: lost; "tens")
relax_alpha = 0.3  # target loss of RelaxLoss, nats (paper: that of RelaxLoss's authors)
hamp_entropy = 0.95  # HAMP: entropy of the labels, share of ln C (HAMP's authors, 10 classes)
hamp_weight = 0.01  # HAMP: weight of the output's entropy (HAMP's authors, 10 classes)
epochs = 12  # epochs from scratch (paper: lost)
retrain_epochs = 10  # epochs of retraining, enough for HAMP to converge; even (paper: lost)
stops = [3, 4, 6, 8]  # epochs at which ordinary training is stopped early (our control)
batch = 64  # samples a step (paper: lost)
lr = 0.005  # learning rate of Adam, cosine to 0, at the start of each training (paper: lost)
converged = 0.8  # a converged network reaches this share of the undefended test accuracy (ours)
shadows = 10  # networks; each one's shadow models: all others but its complement (paper: 8)
learnt = 0.6  # required test accuracy of the undefended network (ours)
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
import numpy as np
from leak_atlas import audit, lab, recipe, report
from leak_atlas.localization.divergence import output_entropies

scratch, tuned, inside = "from scratch", "nothing rewound", "inside CWRF"
claims = report.claims(
    report.Claim(
        "hamp_alone",
        f"HAMP from scratch reaches less than {converged:.0%} of the undefended test accuracy",
        fails=f"HAMP from scratch reaches more than {converged:.0%} of the undefended test "
        "accuracy",
        quantity="test accuracy of HAMP from scratch, divided by that of no defence",
        below=converged,
        margin=0.05,
        paper="Fig. 5b",
        quote="the model solely trained with HAMP fails to converge",
        section="5.2",
        control="HAMP's outputs reach the entropy it asks for; paired over networks",
        headline=True,
    ),
    report.Claim(
        "hamp_gains",
        "HAMP is more accurate inside CWRF than from scratch",
        fails="HAMP is less accurate inside CWRF than from scratch",
        quantity="test accuracy of HAMP: inside CWRF minus from scratch",
        above=0.0,
        margin=0.02,
        paper="Fig. 5b",
        quote="the model can achieve better utility when it is trained with both HAMP and CWRF",
        section="5.2",
        control="the same strength; paired over networks",
        headline=True,
    ),
    report.Claim(
        "steadier",
        "Test accuracy varies less from network to network inside CWRF than from scratch",
        quantity="distance of a network's test accuracy from the median of all networks: inside "
        "CWRF minus from scratch, mean of both defences",
        below=0.0,
        margin=0.01,
        paper="Fig. 5b, Tab. 3",
        quote="stabilizing testing accuracy variance through multiple independent runs",
        section="5.2",
        control="paired over networks",
    ),
    report.leaks_less_inside_claim(
        "RelaxLoss",
        paper="Fig. 5b",
        quote="it shows stable improvements in both generalizability and privacy",
        section="5.2",
    ),
    report.rewinding_claim("rewinding", "defences inside CWRF"),
    regime={"undefended member accuracy": 0.95, "undefended test accuracy": learnt},
)
claims

# %%
study = recipe.RewindStudy(
    recipe.Data(data, pixels),
    recipe.Model(model, width),
    recipe.Schedule(epochs, batch, "adam", lr=lr),
    retraining=retrain_epochs,
    criterion=recipe.Vulnerability(weight=balance, steps=score_steps, batch=batch),
    pool=pool,
    test=test,
    models=shadows,
    dev=dev,
    reference=reference,
    seed=seed,
    precision=precision,
)
defences = {
    "RelaxLoss": recipe.RelaxLoss(relax_alpha),
    "HAMP": recipe.HAMP(hamp_entropy, hamp_weight),
}
no_defence = "no defence"
variants = {no_defence: study.ordinary}
for name, defence in defences.items():
    for where, population in study.in_three_ways(defence, r).items():
        variants[name, where] = population

# %%
before_retraining = study.rewound(r).signals()
comparison = lab.compare(
    variants,
    {"LiRA": recipe.LiRA(), "RMIA": recipe.RMIA()},
    checkpoints={no_defence: stops},
    also=[before_retraining, recipe.self_audit(study.ordinary)],
)

# %% [markdown]
# ## Accuracy and leakage (Fig. 5b)
# A network that lies lower and more to the right is better. The line joins epochs of ordinary
# training.

# %%
all_inside = [(name, inside) for name in defences]
all_tuned = [(name, tuned) for name in defences]
early_stopping = [*comparison.checkpoints[no_defence], no_defence]
hamp_change = comparison.accuracy_difference(("HAMP", inside), ("HAMP", scratch))
words = "significantly more", "significantly less", "not significantly more"
plane = []
for name in defences:
    lines = {"no defence, by epoch": early_stopping}
    lines |= {where: [(name, where)] for where in (scratch, tuned, inside)}
    plane += comparison.plane(lines, "LiRA", panel=name)
report.tradeoff(
    plane,
    reference=None,
    title=f"HAMP is {report.effect(hamp_change, *words)} accurate inside CWRF than from scratch",
    xlabel="test accuracy",
    ylabel="AUC of LiRA",
)

# %%
rows = []
for variant in variants:
    row = {"network": audit.described(variant)}
    row["member accuracy"] = comparison.estimate(variant, "", "member accuracy")
    row["test accuracy"] = comparison.accuracy(variant)
    row["AUC of LiRA"] = comparison.estimate(variant, "LiRA")
    row["AUC of RMIA"] = comparison.estimate(variant, "RMIA")
    row["test accuracy minus early stopping"] = None
    if variant != no_defence:
        row["test accuracy minus early stopping"] = comparison.early_stopping(variant, "LiRA")
    rows.append(row)
entropies = {}  # of the outputs on members, share of ln C
for variant in (no_defence, ("HAMP", scratch), ("HAMP", inside)):
    signals = variants[variant].signals()
    entropies[variant] = output_entropies(comparison.results, signals)
shown = [f"{audit.described(name)} {share.mean():.2f}" for name, share in entropies.items()]
report.table(
    rows,
    caption=f"Mean over {shadows} networks. Last column: at matched AUC of LiRA. Entropy of the "
    f"outputs on members, as a share of its maximum: {', '.join(shown)}. HAMP asks for "
    f"{hamp_entropy:g}",
    fold="All networks: accuracy, AUC and entropy",
)

# %% [markdown]
# ## Verdicts

# %%
hamp_ratio = np.divide(comparison.accuracies["HAMP", scratch], comparison.accuracies[no_defence])
deviation_changes = []  # by defence: deviation inside CWRF minus from scratch, of each network
for name in defences:
    deviations_inside = audit.deviations(comparison.accuracies[name, inside])
    deviations_scratch = audit.deviations(comparison.accuracies[name, scratch])
    deviation_changes.append(deviations_inside - deviations_scratch)


def by_both(variant):
    """A variant under both attacks."""
    return [(variant, attacker) for attacker in comparison.attackers]


relaxloss = comparison.mean_contrast(
    by_both(("RelaxLoss", inside)), by_both(("RelaxLoss", scratch)), number="auc"
)

# %%
rewound_accuracies = []
for signal in before_retraining:
    rewound_accuracies.append(float(comparison.results[signal]["accuracy_member"]))
fall = audit.paired_difference(comparison.members[no_defence], rewound_accuracies)
manipulation_checks = {"member accuracy falls right after the rewind": fall}
lowered = comparison.contrast(no_defence, ("RelaxLoss", scratch), metric="member accuracy")
relaxloss_acts = manipulation_checks | {"RelaxLoss from scratch lowers member accuracy": lowered}
hamp_acts = {}
for where in (scratch, inside):
    raised = audit.paired_difference(entropies["HAMP", where], entropies[no_defence])
    hamp_acts[where] = {f"HAMP {where} raises the outputs' entropy": raised}
checks = {"hamp_alone": hamp_acts[scratch], "hamp_gains": manipulation_checks | hamp_acts[inside]}
checks |= {
    "relaxloss_leak": relaxloss_acts,
    "steadier": manipulation_checks,
    "rewinding": manipulation_checks,
}

# %%
fitted = {}
for where in (inside, tuned, scratch):
    fitted[where] = comparison.estimate(("HAMP", where), "", "member accuracy")
hamp_epochs = f"HAMP trains for {retrain_epochs} epochs inside CWRF, for {epochs} from scratch"
report.judge(
    claims,
    notes={"hamp_gains": f"{hamp_epochs}; its member accuracy {report.listed(fitted)}"},
    hamp_alone=audit.mean_ci(hamp_ratio),
    hamp_gains=hamp_change,
    steadier=audit.mean_ci(np.mean(deviation_changes, axis=0)),
    relaxloss_leak=relaxloss,
    rewinding=comparison.at_matched_auc(all_inside, early_stopping, "LiRA", other=all_tuned),
    checks=checks,
    regime={
        "undefended member accuracy": comparison.estimate(no_defence, "", "member accuracy"),
        "undefended test accuracy": comparison.accuracy(no_defence),
    },
)

# %% [markdown]
# **Limits.** The profile `quick` has ten classes and HAMP's published strength for ten classes, the
# paper's data a hundred: convergence here is no evidence about CIFAR-100. In `quick`, HAMP with
# nothing rewound is as inaccurate as inside CWRF (see the table), so the rewind is not the cause.
# Both fit fewer members than HAMP from scratch: longer retraining may remove the loss of accuracy.
# The paper expects a gain "only when the approaches can be effective against MIAs" (5.2). In
# `quick`, HAMP from scratch leaks more than no defence, so this condition is not met. The paper
# does not say when a network has converged. Networks are retrained for longer than on the page
# `tab03_cifar10`, so that HAMP converges in retraining: the two pages' numbers differ. Each network
# has its own members, which makes test accuracy vary more, from scratch and inside CWRF alike.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
