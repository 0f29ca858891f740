# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does augmentation lower the disparity, and more than early stopping does?
#
# **The paper.** PPTP (Fang & Kim 2026), Fig. 3: "data augmentation does help mitigate disparity
# when it occurs", and it "has no impact on “where” disparity happens" (section 3.3).
#
# **Setup.** In a *pair*, M_all trains on a pool of samples, M_h1 on half of it, from the same
# initial weights. Both saw this half (*seen* samples). Only M_all saw the others (*unseen*). The
# AUC of a stage says how well the Euclidean distance between the features of M_all and of M_h1
# separates unseen from seen samples. The *disparity* of a stage is |AUC − 0.5|. Augmentation means
# random crops and flips.
#
# **Controls.**
#
# 1. *No augmentation* (decides the first answer): is the disparity of stage 4 smaller in augmented
#    pairs?
# 2. *Early stopping* (decides the second answer): is it smaller than in pairs without augmentation,
#    stopped at about the member accuracy of augmented pairs?
# 3. *Direction*: the distance 1 − cosine, which ignores the length of features.
# 4. *Two seeds* (grey): two networks M_all without augmentation, with different seeds. Both saw all
#    samples, so the true AUC is 0.5.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (64 by the architecture)
stem = "conv3"  # first layer (not stated; conv3-pool gives the paper's 4x4 map at 64 pixels)
pool = 600  # samples that M_all trains on (paper: 100,000)
epochs = 12  # epochs without augmentation (paper: not stated)
stop = 5  # epoch of early stopping, set on the pilot seeds (ours)
augmented_epochs = 30  # epochs with augmentation: networks learn more slowly (paper: not stated)
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0 (paper: not stated)
crop = 1  # padding of the random crop, pixels (paper: not stated)
flip = True  # random horizontal flips (paper: yes)
pairs = 8  # pairs of networks, each with its own half of the pool (paper: three runs)
learnt = 0.6  # least test accuracy of a network that has learnt (ours)
seed = 101  # evaluation seed: of halves, initialisations and orders
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import lab, report
from leak_atlas.recipe import Augment, Data, Model, ProbeStudy, Schedule, Threshold

effect = 0.02  # the smallest change of an AUC that is worth having
paired = "paired: same seeds and halves"
fit = (
    "stopped pairs have at most 0.02 more member accuracy, mean of M_all and M_h1, than augmented "
    "pairs; "
)
stage_4 = "disparity |AUC − 0.5| of stage 4 by Euclidean distance"
lead = "stage 4 minus the largest of stages 1 to 3, in augmented pairs"
nowhere_else = "data augmentation has no impact on “where” disparity happens"
claims = report.claims(
    report.Claim(
        "weaker",
        "Augmentation lowers the disparity of stage 4",
        fails="Augmentation raises the disparity of stage 4",
        quantity=f"{stage_4}: augmented minus not augmented",
        below=0.0,
        margin=effect,
        paper="Fig. 3",
        quote="data augmentation does help mitigate disparity when it occurs",
        section="3.3",
        control=paired,
        headline=True,
    ),
    report.Claim(
        "weaker_than_stopping",
        "Stage 4 has a smaller disparity after augmentation than after early stopping",
        fails="Stage 4 has a larger disparity after augmentation than after early stopping",
        quantity=f"{stage_4}: augmented minus stopped early",
        below=0.0,
        margin=effect,
        ours="our control",
        control=fit + paired,
        headline=True,
    ),
    report.Claim(
        "stays_in_stage_4",
        "In augmented pairs, stage 4 has a larger disparity than each of stages 1 to 3",
        quantity=f"disparity |AUC − 0.5| by Euclidean distance: {lead}",
        above=0.0,
        margin=effect,
        paper="Fig. 3",
        quote=nowhere_else,
        section="3.3",
        control="earlier stages of the same networks; two seeds on the same data",
    ),
    report.Claim(
        "stays_by_direction",
        "In augmented pairs, stage 4 has a larger disparity by direction than each of stages 1 "
        "to 3",
        quantity=f"disparity |AUC − 0.5| by direction: {lead}",
        above=0.0,
        margin=effect,
        ours="our control",
        control="distance that ignores the length of features",
    ),
    report.Claim(
        "leaks_less",
        "The confidence attack has a lower AUC after augmentation than after early stopping",
        quantity="AUC of the confidence attack on M_h1: augmented minus stopped early",
        below=0.0,
        margin=effect,
        ours="our question",
        control=fit + paired,
    ),
    regime={"member accuracy without augmentation": 0.95, "test accuracy": learnt},
)
claims

# %% [markdown]
# ## AUC of each stage after augmentation and early stopping (Fig. 3)
# The disparity is the distance from the dotted line.


# %%
def study(length, augment):
    """Pairs that train for some epochs."""
    return ProbeStudy(
        Data(data, pixels),
        Model(model, width, stem),
        Schedule(length, batch, optimizer, lr, nesterov=True, augment=augment),
        pool,
        pairs,
        seed,
        precision,
    )


plain = f"not augmented, {epochs} epochs"
stopped = f"not augmented, stopped after epoch {stop}"
augmented = f"augmented, {augmented_epochs} epochs"
ordinary = study(epochs, None).probes
probes = {plain: ordinary, stopped: [pair.at(stop) for pair in ordinary]}
probes[augmented] = study(augmented_epochs, Augment(crop, flip)).probes

comparison = lab.probe(probes, {"Conf": Threshold()})

# %%
measures = ("euclidean", "direction")
from_stopped = comparison.change(augmented, stopped, "stage4")
smaller = report.effect(
    -from_stopped,
    "significantly smaller",
    "significantly larger",
    "not significantly smaller",
)
report.profile(
    comparison.rows(measures),
    hue="variant",
    facet="measure",
    floor=comparison.floor_rows(measures),
    hatch_from="stage4",
    title=f"Stage 4's disparity is {smaller} after augmentation than after early stopping",
    ylabel="AUC, unseen against seen samples",
)

# %% [markdown]
# ## Accuracy, disparity and attack of each training
# The attack is a threshold on the true class's probability.

# %%
rows = []
for name in comparison.variants:
    row = {"training": name}
    row["member accuracy, M_all"] = comparison.whole.estimate(name, "", "member accuracy")
    row["member accuracy, M_h1"] = comparison.half.estimate(name, "", "member accuracy")
    row["test accuracy, M_all"] = comparison.whole.accuracy(name)
    row["disparity of stage 4"] = comparison.disparity(name, "stage4")
    row["AUC of the attack on M_h1"] = comparison.half.estimate(name, "Conf")
    rows.append(row)
fit_of_whole = comparison.whole.contrast(stopped, augmented, metric="member accuracy")
growth = f"Disparity of stage 4 without augmentation, epoch {epochs} minus epoch {stop}"
differences = {
    growth: comparison.change(plain, stopped, "stage4"),
    "member accuracy of M_all, early stopping minus augmentation": fit_of_whole,
}
caption = f"Mean over {pairs} pairs; the attack is the confidence attack on M_h1"
caption = f"{caption}. {report.listed(differences)}"
report.table(rows, caption=caption, fold="Each training")

# %% [markdown]
# ## Verdicts

# %%
members = {}  # mean of M_all and M_h1
fits = {}  # of each network
for name in comparison.variants:
    whole = comparison.whole.estimate(name, "", "member accuracy").value
    half = comparison.half.estimate(name, "", "member accuracy").value
    members[name] = (whole + half) / 2
    fits[name] = f"{whole:.3f} of M_all and {half:.3f} of M_h1"
better_fit = members[stopped] - members[augmented]
condition = "stopped pairs have at most 0.02 more member accuracy than augmented pairs"
matched = {condition: better_fit <= 0.02}
by_direction = comparison.change(augmented, stopped, "stage4", "direction")
member_accuracies = f"{fits[stopped]} after early stopping, {fits[augmented]} after augmentation"
note = f"{report.listed({'by direction': by_direction})}. Member accuracy: {member_accuracies}"
notes = {"weaker_than_stopping": note}

# %%
left = comparison.disparity(stopped, "stage4")
if left.value <= effect:
    left_words = report.listed({"disparity after early stopping": left})
    notes["weaker_than_stopping"] = f"{left_words}, so it cannot fall by more; {note}"
after = comparison.disparity(augmented, "stage4")
lead_by_direction = comparison.lead("stage4", "direction", [augmented])
if after.value <= effect:
    after_words = report.listed({"disparity of stage 4 in augmented pairs": after})
    direction_words = report.listed({"by direction": lead_by_direction})
    limit = f"{after_words}, so the difference is at most this disparity"
    notes["stays_in_stage_4"] = f"{limit}; {direction_words}"

# %%
report.judge(
    claims,
    weaker=comparison.change(augmented, plain, "stage4"),
    weaker_than_stopping=from_stopped,
    stays_in_stage_4=comparison.lead("stage4", variants=[augmented]),
    stays_by_direction=lead_by_direction,
    leaks_less=comparison.half.contrast(augmented, stopped, "Conf"),
    notes=notes,
    checks={"weaker_than_stopping": matched, "leaks_less": matched},
    regime={
        "member accuracy without augmentation": members[plain],
        "test accuracy": comparison.regime()["test accuracy"],
    },
)

# %% [markdown]
# **Limits.** Augmented pairs may train for more epochs than all others. Early stopping matches the
# mean member accuracy of M_all and M_h1, not that of each network (see the table). In `quick` and
# `desk-cpu`, the crop's padding is half of the usual one: with more, networks hardly fit small
# pools. The pages `fig04_tab01_map_size_resnet` and `fig06_tab03_channels_resnet` share networks
# with this page and are no independent evidence.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
