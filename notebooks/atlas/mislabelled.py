# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do mislabelled members stay exposed under every defence?
#
# **Question.** The questions are ours. A network can fit a wrong label only by memorizing it, so
# mislabelled members are a worst case. Are they more exposed than the average member, under every
# defence? Where mislabelled members leak equally, are the papers' own defences more accurate than
# early stopping?
#
# **Setup.** Some samples have the label of another class, the same in all networks. About half of
# them are members of a network. The page `defences` says what each defence does. Shadow models are
# trained with the same defence. The leakage is the AUC of the strongest of three attacks: LiRA,
# RMIA and a threshold on the confidence.
#
# **Controls.**
#
# 1. *Mislabelled non-members* (decide the first answer): the AUC on mislabelled samples compares
#    mislabelled members with them, so a wrong label alone does not identify a member. We subtract
#    the AUC on all samples.
# 2. *Early stopping* of ordinary training, *at matched AUC on mislabelled samples* (decides the
#    second answer): two test accuracies are compared where this AUC is the same.
# 3. *Pruning in rounds without a defence* is compared with SWMR.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data)
pixels = 16  # side of the images, pixels, after area resize
wrong = 0.05  # share of the training part with a wrong label
model = "resnet10"  # architecture
width = 8  # channels of stage 1 (64 by the architecture)
pool = 600  # samples from which each network draws half
dev = 300  # samples outside the pool, not used here
reference = 300  # samples outside the pool, for the score of CWRF
test = 600  # test samples
epochs = 12  # epochs of ordinary training, and of every defence from scratch
retrain_epochs = 10  # epochs after rewinding or pruning
stops = [1, 2, 3, 4, 5, 6, 8, 10]  # epochs at which ordinary training is stopped early
batch = 64  # samples a step
lr = 0.005  # learning rate of Adam, cosine to 0, at the start of each training
relax = [0.3, 0.6, 0.8]  # RelaxLoss: target losses, nats; the middle one is used
pads = [1, 2]  # augmentation: padding of the random crop with flips, pixels; the last is used
sub_models = 3  # SELENA: networks that label the members (its authors: 25)
leave_out = 1  # SELENA: of these, how many do not train on a given member (its authors: 10)
risky_from = "stage3"  # PPTP: first stage that is rewound
share = 0.05  # CWRF: share of the weights that is rewound
balance = 0.5  # CWRF: lambda of the score
score_steps = 30  # CWRF: updates of the score
sparsity = 0.6  # share of the weights that is pruned
ppb = [2.0, 4.0]  # PPB: weights; the last is used
rounds = 2  # WeMem: rounds of pruning, which share `retrain_epochs`
judges = 16  # WeMem: networks that give the memorization scores
score_epochs = 8  # WeMem: epochs of each judge
lambdas = [0.01, 0.1]  # WeMem: lambda_r, weight of the penalty (RMR); the last is used
window = 12  # WeMem: members of a class in the window (RSW)
step = 4  # WeMem: ranks by which the window moves in an epoch
shadows = 10  # networks; the shadow models of one are the others, without its complement
learnt = 0.6  # least test accuracy of a network that has learnt
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0]  # seed on which strengths and rules were chosen
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
import numpy as np
from leak_atlas import audit, lab, recipe, report
from leak_atlas.data import readers
from leak_atlas.data.designs import Role

matched = "test accuracy at matched AUC on mislabelled samples"
ours = ["RelaxLoss inside PPTP", "RelaxLoss inside CWRF", "PPB", "SWMR"]
others = ["RelaxLoss", "SELENA", "augmentation"]


def beats(name, defences, subject, headline=False):
    """At matched AUC on mislabelled samples, defences are more accurate than early stopping."""
    return report.Claim(
        name,
        f"At matched AUC on mislabelled samples, {subject} are on average more accurate than early "
        "stopping",
        fails=f"At matched AUC on mislabelled samples, {subject} are on average less accurate than "
        "early stopping",
        quantity=f"{matched}: mean of {', '.join(defences)} minus early stopping",
        above=0.0,
        margin=0.02,
        ours=True,
        control="early stopping of ordinary training on the same labels",
        headline=headline,
    )


claims = report.claims(
    report.Claim(
        "stay_exposed",
        "Under every defence, mislabelled members are more exposed than the average member",
        fails="Under at least one defence, mislabelled members are less exposed than the average "
        "member",
        quantity="AUC of the strongest attack: on mislabelled minus on all samples, for the "
        "defence with the smallest difference",
        above=0.0,
        margin=0.05,
        ours=True,
        control="mislabelled non-members",
        headline=True,
    ),
    beats("papers_gain", ours, "the papers' own defences", headline=True),
    beats("others_gain", others, "RelaxLoss, SELENA and augmentation"),
    report.Claim(
        "swmr",
        "SWMR lowers the AUC more on mislabelled samples than on all samples",
        fails="SWMR lowers the AUC less on mislabelled samples than on all samples",
        quantity="AUC of the strongest attack, pruning in rounds without a defence minus SWMR: on "
        "mislabelled minus on all samples",
        above=0.0,
        margin=0.05,
        ours="ours, after WeMem",
        control="the same rounds without a defence",
    ),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)
claims

# %%
study = recipe.AtlasStudy(
    data=recipe.Data(data, pixels, mislabelled=wrong),
    model=recipe.Model(model, width),
    schedule=recipe.Schedule(epochs, batch, "adam", lr=lr),
    retraining=retrain_epochs,
    pool=pool,
    test=test,
    models=shadows,
    dev=dev,
    reference=reference,
    seed=seed,
    precision=precision,
    risky_from=risky_from,
    criterion=recipe.Vulnerability(weight=balance, steps=score_steps, batch=batch),
    share=share,
    sparsity=sparsity,
    rounds=rounds,
    judges=judges,
    score_epochs=score_epochs,
)

# %%
ordinary, in_rounds = "ordinary training", "pruning in rounds, no defence"
relaxed = recipe.RelaxLoss(relax[len(relax) // 2])
crop = recipe.Augment(pads[-1])
penalty, sliding = recipe.RMR(lambdas[-1]), recipe.Window(window, step)
variants = {
    ordinary: study.ordinary,
    "RelaxLoss": study.defended(relaxed),
    "RelaxLoss inside PPTP": study.stages.inside(relaxed),
    "RelaxLoss inside CWRF": study.weights.inside(share, relaxed),
    "SELENA": study.setup.selena(study.schedule, sub_models=sub_models, leave_out=leave_out),
    "augmentation": study.setup.trained(
        schedule=recipe.Schedule(epochs, batch, "adam", lr=lr, augment=crop)
    ),
    "PPB": study.pruned.train(study.short, recipe.PPB(ppb[-1])),
    in_rounds: study.in_rounds(),
    "SWMR": study.in_rounds(penalty, sliding),
}
# ordinary training goes on for the same number of epochs as the defences that retrain
longer = f"ordinary training, {epochs} + {retrain_epochs} epochs"
variants[longer] = study.weights.tuned()
earlier = {epoch: study.ordinary.at(epoch) for epoch in stops}

# %%
attackers = {
    "LiRA": recipe.LiRA(),
    "RMIA": recipe.RMIA(),
    "confidence": recipe.Threshold("confidence", sign="shadows"),
}
comparison = lab.compare(
    variants,
    attackers,
    checkpoints={longer: earlier | {epochs: study.ordinary}},
    also=recipe.self_audit(study.ordinary),
)
on_all = comparison.with_strongest("strongest attack")
mislabelled = readers.mislabelled(study.data)
on_wrong = comparison.among(mislabelled).with_strongest("strongest attack")

# %% [markdown]
# ## Test accuracy and AUC on mislabelled samples
# A *gain* is a difference in test accuracy at matched AUC on mislabelled samples. The *possible
# bias* is the largest gain of one epoch of ordinary training over the others (Robustness).

# %%
lines = {"ordinary training, by epoch": [*comparison.checkpoints[longer], longer]}
for defence in [*ours, *others]:
    lines[defence] = [defence]
gain = on_wrong.early_stopping(ours, "strongest attack")
placebo = on_wrong.placebo("strongest attack")
bias = audit.possible_bias(placebo)
report.tradeoff(
    on_wrong.plane(lines, "strongest attack"),
    facet=None,
    reference=None,
    title=f"The papers' defences gain {gain.value:.3f} over early stopping on average; the "
    f"possible bias is {bias.value:.3f}",
    xlabel="test accuracy",
    ylabel="AUC on mislabelled samples",
)


# %%
def fits_wrong_labels(variant):
    """Accuracy on mislabelled members: the share that a network gives the wrong label."""
    accuracies = []
    for step in variants[variant].signals():
        signals = comparison.results[step]
        is_wrong = np.isin(signals["index"], mislabelled)
        chosen = is_wrong & (signals["role"] == Role.MEMBER)
        answers = signals["logits"][chosen].argmax(axis=1)
        accuracies.append(np.mean(answers == signals["labels"][chosen]))
    return audit.mean_ci(accuracies, bounds=(0, 1))


# %%
rows = []
for variant in variants:
    row = {"network": audit.described(variant)}
    row["member accuracy"] = comparison.estimate(variant, "", "member accuracy")
    row["mislabelled members"] = fits_wrong_labels(variant)
    row["test accuracy"] = comparison.accuracy(variant)
    row["AUC, all samples"] = on_all.estimate(variant, "strongest attack")
    row["AUC, mislabelled samples"] = on_wrong.estimate(variant, "strongest attack")
    if variant not in (ordinary, longer):
        row["accuracy minus early stopping"] = on_wrong.early_stopping(variant, "strongest attack")
    rows.append(row)
index = comparison.attacks[ordinary, "LiRA"]["index"]
number = sum(sample in mislabelled for sample in index)
report.table(
    rows,
    caption=f"Mean over {shadows} networks. {number} of {len(index)} samples of the pool are "
    "mislabelled. Mislabelled members: accuracy on them, by their wrong labels. Last column: at "
    "matched AUC on mislabelled samples. "
    f"{epochs} + {retrain_epochs} epochs: trained again, as after rewinding or pruning",
    fold="All networks",
)

# %% [markdown]
# ## Verdicts


# %%
def fall(on_samples):
    """How much SWMR lowers the AUC of the strongest attack on some samples, `(n,)`."""
    undefended = on_samples.measured(in_rounds, "strongest attack")
    return undefended - on_samples.measured("SWMR", "strongest attack")


more_exposed = {}
for defence in [*ours, *others]:
    wrong_auc = on_wrong.measured(defence, "strongest attack")
    all_auc = on_all.measured(defence, "strongest attack")
    more_exposed[defence] = audit.paired_difference(wrong_auc, all_auc)
least_exposed = min(more_exposed, key=lambda defence: more_exposed[defence].value)
rest = [value for defence, value in more_exposed.items() if defence != least_exposed]
without_selena = [defence for defence in others if defence != "SELENA"]
all_others_gain = on_wrong.early_stopping(others, "strongest attack")
others_gain = on_wrong.early_stopping(without_selena, "strongest attack")

# %%
report.judge(
    claims,
    stay_exposed=audit.least(more_exposed.values()),
    papers_gain=gain,
    others_gain=all_others_gain,
    swmr=audit.paired_difference(fall(on_wrong), fall(on_all)),
    notes={
        "stay_exposed": report.listed({f"smallest without {least_exposed}": audit.least(rest)}),
        "papers_gain": report.bias_note(bias, gain),
        "others_gain": f"{report.bias_note(bias, all_others_gain)}; "
        + report.listed({"without SELENA": others_gain}),
    },
    regime={
        "member accuracy": comparison.estimate(ordinary, "", "member accuracy"),
        "test accuracy": comparison.accuracy(ordinary),
    },
)

# %% [markdown]
# ## Robustness: early stopping compared with itself
# Each epoch of ordinary training is compared with the line through the other epochs. The true
# difference is 0. A value above 0 shows by how much the comparison can favour a defence there. A
# negative value means that this epoch is inaccurate. A defence that is compared with it gains too
# much.

# %%
report.table(placebo, fold="Early stopping compared with itself")

# %% [markdown]
# **Limits.** Small networks, few mislabelled samples, one strength of each defence. Intervals cover
# other networks, not other samples. Wrong labels are drawn at random; those given by people are
# harder to notice. Where we stop early, the learning rate has not yet fallen to 0: a training of
# fewer epochs is a stronger control (page `shorter_training`). Without a defence, the AUC on
# mislabelled samples is 1, its maximum, so its fall under SWMR understates the protection.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
