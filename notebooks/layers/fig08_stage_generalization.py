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
# # Does generalization stall where the disparity begins?
#
# **PPTP, Fig. 8** (section 3.3). After each stage of a trained network, a linear support vector machine (SVM) is fitted to the stage's features of the training
# samples; its test accuracy says how much of what generalizes is there already. Beside it stands the disparity of the same networks (Figs. 9 to 11).
#
# **The paper says** that this accuracy rises in stages 1 to 3 and levels off after: ResNets slow down, VGGs and Active Token Mixers (ATM) stagnate or get worse.
# VGG11 keeps its pace from stage 3 to 4, VGG19 does not; and the stall is where the privacy risk occurs, "perfectly" (TinyImageNet).
#
# **It would be wrong if** accuracy did not rise first, or rose as fast after stage 3, or where the disparity grows most, as before.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (python -m lib.data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
families = {"resnet": ["resnet10", "resnet18"], "vgg": ["vgg11", "vgg19"], "atm": ["atm-xt", "atm-t"]}  # shallowest first (paper: all its sizes)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer of a ResNet (paper: not stated; conv3-pool gives its 4x4 map in stage 4 at 64 pixels)
patch = 2  # stride of an ATM's patch embedding, pixels (paper: not stated; 4 as published)
pools = {"resnet": 600, "vgg": 600, "atm": 200}  # samples in D_all, as in Figs. 10, 9 and 11 (paper: 100,000)
durations = {"resnet": 12, "vgg": 16, "atm": 16}  # epochs (paper: not stated)
batches = {"resnet": 64, "vgg": 64, "atm": 32}  # samples a step (paper: not stated)
optimizers = {"resnet": "adam", "vgg": "adam", "atm": "adam"}  # adam, of an ATM without weight decay, or sgd
rates = {"resnet": 0.005, "vgg": 0.005, "atm": 0.005}  # learning rate, cosine to 0 (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip)
pairs = 8  # pairs of networks of each architecture, each with its own seed and its own half (paper: one)
margin = 0.02  # an AUC closer to 0.5 than this counts as no disparity
seed = 1  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
import numpy as np

from lib import audit, lab, report
from lib.localization import disparity
from lib.recipe import Augment, Data, Halves, Model, Schedule, Setup, StageProbe, seed_floors, self_audit

claims = report.claims(
    report.Claim(
        "accuracy_rises_early",
        "In every network the accuracy rises from stage to stage up to stage 3",
        quantity="SVM's gain of accuracy in stages 2 and 3, smallest over stages and networks",
        above=0.0,
        paper="Fig. 8",
        control="the same SVM before training",
    ),
    *(
        report.Claim(
            f"slows_{family}",
            f"After stage 3 the accuracy of every {family} rises more slowly",
            quantity=f"SVM's gain in stage 4 minus its mean gain in stages 2 and 3, largest over {' and '.join(names)}",
            below=0.0,
            paper="Fig. 8",
            control="the same SVM before training",
        )
        for family, names in families.items()
    ),
    report.Claim(
        "stalls_where_disparity_begins",
        "The accuracy slows down where the disparity begins",
        quantity="SVM's gain where the disparity by direction grows most (stage 3 or later) minus its mean gain before, largest over networks",
        below=0.0,
        paper="section 3.3",
        control="the same SVM before training",
    ),
    report.Claim(
        "shallow_vgg_keeps_its_pace",
        "From stage 3 to 4 the shallow VGG keeps its pace, the deep one does not",
        quantity="SVM's gain in stage 4, shallowest VGG minus deepest",
        above=0.0,
        paper="section 3.3",
        control="paired: same seeds, same halves",
    ),
)
claims

# %% [markdown]
# ## Networks of three families
# They are those of `fig09`, `fig10` and `fig11`: nothing is trained for this figure alone. Families, whose pools differ, are not compared.

# %%
own = {"resnet": {"stem": stem}, "vgg": {}, "atm": {"patch": patch}}
also = {"nesterov": True, "augment": Augment(augment) if augment else None}
schedules = {f: Schedule(durations[f], batches[f], optimizers[f], rates[f], weight_decay=0.0 if f == "atm" else 5e-4, **also) for f in families}
halves = {f: Halves(pools[f], seed=seed) for f in families}
probes = {
    name: Setup(Data(data, pixels), halves[family], Model(name, width, **own[family]), schedules[family], pairs, seed, precision).pairs()
    for family, names in families.items()
    for name in names
}
svm = {name: [StageProbe(pair.whole) for pair in probe] for name, probe in probes.items()}
before = {name: [StageProbe(pair.whole.at("init")) for pair in probe] for name, probe in probes.items()}
distances = {name: [pair.distance() for pair in probe] for name, probe in probes.items()}
floors = {name: seed_floors(probe) for name, probe in probes.items()}

# %%
results = lab.realize(svm, before, distances, floors, [self_audit(probes[names[0]]) for names in families.values()])

# %% [markdown]
# ## What generalizes (above), and what knows the members (below)

# %%
accuracy, random = (  # pairs by stages
    {name: np.array([results[s]["accuracy"][[part.startswith("stage") for part in results[s].parts]] for s in steps]) for name, steps in each.items()}
    for each in (svm, before)
)
gains = {name: np.diff(found) for name, found in accuracy.items()}
slowing = {(name, k): audit.paired_difference(g[:, k], g[:, :k].mean(axis=1)) for name, g in gains.items() for k in range(1, g.shape[1])}
slower = sum(slowing[name, 2].value < 0 for name in probes)  # gains count from stage 2, so that of stage 4 has the number 2
report.profile(
    [
        {"part": f"stage{i}", "value": audit.over(each), "network": name, "features": kind}
        for kind, found in (("trained", accuracy), ("before training", random))
        for name in probes
        for i, each in enumerate(found[name].T, 1)
    ],
    hue="features",
    facet="network",
    null=None,
    title=f"Up to stage 3 the accuracy rises in {sum(g[:, :2].mean() > 0 for g in gains.values())} of {len(probes)} networks; after it, {slower} gain less or lose more",
    ylabel="test accuracy of an SVM",
)

# %%
measures = {"euclidean": "Euclidean (the paper's)", "direction": "direction (1 − cosine)"}
parts = {name: results[steps[0]].parts for name, steps in distances.items()}
read = {(name, m): disparity.read([results[d] for d in distances[name]], m) for name in probes for m in measures}
profiles = {(name, m): dict(zip(parts[name], disparity.profile(*found), strict=True)) for (name, m), found in read.items()}
strong = {name: [disparity.strength(e).value for part, e in profiles[name, "direction"].items() if part.startswith("stage")] for name in probes}
begins = {name: max(range(2, len(found)), key=lambda k, found=found: found[k] - found[k - 1]) for name, found in strong.items()}
report.profile(
    [
        {"part": part, "value": estimate, "network": name, "measure": measures[m]}
        for (name, m), found in profiles.items()
        for part, estimate in found.items()
        if part.startswith("stage")
    ],
    hue="measure",
    facet="network",
    title="Disparity grows most in " + ", ".join(f"stage{k + 1} ({name})" for name, k in begins.items()),
    ylabel="AUC, unseen against seen by M_h1",
)

# %%
controls = {name: disparity.floor(disparity.measured([results[f] for f in floors[name]], "direction"), read[name, "direction"][1]) for name in probes}
report.table(
    [
        {
            "network": name,
            "gain a stage, 2 and 3": audit.over(gains[name][:, :2].mean(axis=1)),
            "gain in stage 4": audit.over(gains[name][:, 2]),
            "onset": disparity.onset(list(profiles[name, "direction"].values()), controls[name], parts[name], margin) or "none",
            "paper, onset": {"resnet": "stage4", "vgg": "earlier in vgg19", "atm": "stage3"}[family],
        }
        for family, names in families.items()
        for name in names
    ],
    paper="Figs. 9 to 11; by Fig. 8 all gain less after stage 3",
    caption=f"Gains: test accuracy of the SVM. Onset, by direction: first stage outside 0.5 ± {margin} and outside the seed floor; {pairs} pairs",
)

# %%
report.judge(
    claims,
    accuracy_rises_early=audit.least(audit.over(g[:, k]) for g in gains.values() for k in (0, 1)),
    **{f"slows_{family}": audit.largest(slowing[name, 2] for name in names) for family, names in families.items()},
    stalls_where_disparity_begins=audit.largest(slowing[name, k - 1] for name, k in begins.items()),
    notes={
        "accuracy_rises_early": "We think that this data set asks for no depth: on stage 1 before training the SVM does nearly as well as on any after",
        "slows_atm": "Accuracy that falls before stage 4 has no rise that could slow down; here it falls less in stage 4 than before",
        "stalls_where_disparity_begins": "Accuracy that falls before stage 4 has no rise that could slow down",
    },
    shallow_vgg_keeps_its_pace=audit.paired_difference(*(gains[families["vgg"][i]][:, 2] for i in (0, -1))),
)

# %% [markdown]
# **Caveat.** A linear SVM on features of a few hundred images is a small judge; and where accuracy does not rise first, that it "slows down" says nothing.

# %%
report.provenance(results)
