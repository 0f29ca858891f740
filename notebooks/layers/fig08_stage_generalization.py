# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does generalization stall where the disparity grows most?
#
# **PPTP, Fig. 8** (section 3.3). After each stage of a trained network, a linear support vector machine (SVM) is fitted
# to the stage's features of the training samples; its test accuracy says how much of what generalizes is there already.
# Beside it stands the disparity of the same networks (Figs. 9 to 11).
#
# **The paper says** that this accuracy keeps increasing in stages 1 to 3 and levels off after: ResNets slow down, VGGs
# and Active Token Mixers (ATM) stagnate or get worse. This "perfectly matches where the privacy risk occurs". VGG11
# keeps its pace from stage 3 to 4, VGG19 does not (TinyImageNet). The text gives no number and no setting of the SVM.
#
# **A choice that decides.** An early map has many times the numbers of a late one. With all of them, a linear SVM on
# images of `quick` needs no depth (draw 0): nothing rises, so nothing can stall. So every map is also mixed at random
# down to the same few numbers. But with few numbers an early map loses more than a late one, and this alone could make
# accuracy rise. The control is the same SVM on the same networks before training. The paper's claim that accuracy rises
# is judged on all features; what is said of stalls is said of few numbers, and how few was chosen on draw 0.
#
# **It would be wrong if** accuracy did not rise first, or if, where the disparity grows most, it rose faster than
# before. A family whose accuracy does not rise has nothing that could stall. Rules were settled on draw 0, a referee's
# objections in hand, and are judged on this one (seed 1).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
families = {"resnet": ["resnet10", "resnet18"], "vgg": ["vgg11", "vgg19"], "atm": ["atm-xt", "atm-t"]}  # shallowest first (paper: all its sizes)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer of a ResNet (paper: not stated; conv3-pool gives its 4x4 map in stage 4 at 64 pixels)
patch = 4  # stride of an ATM's patch embedding, pixels (paper: not stated; 4 as published)
init = "xavier"  # initial weights of an ATM, as in Fig. 11: own (published) or xavier
pools = {"resnet": 600, "vgg": 600, "atm": 512}  # samples in D_all, as in Figs. 10, 9 and 11 (paper: 100,000)
durations = {"resnet": 12, "vgg": 16, "atm": 20}  # epochs (paper: not stated)
batches = {"resnet": 64, "vgg": 64, "atm": 128}  # samples a step (paper: not stated)
optimizers = {"resnet": "adam", "vgg": "adam", "atm": "adam"}  # adam, of an ATM without weight decay, or sgd
rates = {"resnet": 0.005, "vgg": 0.005, "atm": 0.003}  # learning rate, cosine to 0 (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip)
pairs = 6  # pairs of networks of each architecture, each with its own seed and its own half (paper: one)
numbers = 32  # that each stage's map is mixed down to, for the SVM (paper: not stated)
whole = 4096  # numbers that a map is mixed down to where the SVM sees all features, if it has more (paper: not stated)
points = 0.03  # smallest change of accuracy worth having (ours)
fitted = 0.85  # least member accuracy of a network that has learnt its members, ATMs included (ours)
learnt = 0.6  # least test accuracy of a network that has learnt (ours)
seed = 101  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
import numpy as np
from leak_atlas import audit, lab, report
from leak_atlas.localization import disparity
from leak_atlas.recipe import Anatomy, Augment, Data, Halves, Model, Schedule, Setup, Signals, StageProbe, self_audit

few_paper, ours = "section 3.3, with few numbers", {"ours": "our question", "margin": points}
claims = report.claims(
    report.Claim("rises", "With all features of a map, the accuracy of ResNets and VGGs rises from stage 1 to 3", "SVM's accuracy with all features, stage 3 minus stage 1, smallest over ResNets and VGGs", above=0.0, paper="Fig. 8", control="paired: same networks", margin=points),
    report.Claim("training_adds_with_depth", "Training adds more in the last stage than in the first, whether the SVM sees few numbers or all", "SVM's accuracy, last stage minus first, trained minus untrained, smallest over ResNets, VGGs and both readings", above=points, control="the same networks untrained", **ours),
    report.Claim("resnet_stalls", "Where the disparity of ResNets grows most, their accuracy on few numbers rises more slowly than before", "SVM's gain where the disparity grows most minus its mean gain before, largest over ResNets", below=0.0, paper=few_paper, control="paired: same networks", margin=points),
    report.Claim("vgg_complete_before", "In VGGs, few numbers of the stage before the disparity grows most do as well as the whole network", "SVM's accuracy one stage before, minus the network's own test accuracy, smallest over VGGs", above=-points, control="the network itself", **ours),
    report.Claim("shallow_vgg_gains_more", "From stage 3 to 4 the shallow VGG gains more than the deep one", "SVM's gain in stage 4 on few numbers, shallowest VGG minus deepest", above=0.0, paper=few_paper, control="paired: same halves", margin=points),
    report.Claim("atm_never_gains", "In ATMs no stage gains accuracy worth having over the one before, with few numbers or with all", "SVM's gain, largest over stages, ATMs and both readings", below=points, control="paired: same networks", **ours),
    regime={"member accuracy of every network": fitted, "test accuracy of every network": learnt},
)  # fmt: skip
claims

# %% [markdown]
# ## Networks of three families
# They are those of `fig09`, `fig10` and `fig11`: nothing is trained for this figure alone. Families are not compared.

# %%
own = {"resnet": {"stem": stem}, "vgg": {}, "atm": {"patch": patch, "init": init}}
also = {"nesterov": True, "augment": Augment(augment) if augment else None}
schedules = {f: Schedule(durations[f], batches[f], optimizers[f], rates[f], weight_decay=0.0 if f == "atm" else 5e-4, **also) for f in families}
halves = {f: Halves(pools[f], seed=seed) for f in families}
probes = {
    name: Setup(Data(data, pixels), halves[family], Model(name, width, **own[family]), schedules[family], pairs, seed, precision).pairs()
    for family, names in families.items()
    for name in names
}
sees = {numbers: f"{numbers} numbers of a map", whole: "all features"}
after = {(name, size): [StageProbe(pair.whole, size) for pair in probe] for name, probe in probes.items() for size in sees}
rated = [name for family in ("resnet", "vgg") for name in families[family]]
before = {(name, size): [StageProbe(pair.whole.at("init"), size) for pair in probes[name]] for name in rated for size in sees}
maps = {name: Anatomy(probe[0].whole.data, probe[0].whole.model) for name, probe in probes.items()}
distances = {name: [pair.distance() for pair in probe] for name, probe in probes.items()}
signals = {name: [Signals(pair.whole) for pair in probe] for name, probe in probes.items()}

# %%
results = lab.realize(after, before, maps, distances, signals, [self_audit(probes[names[0]]) for names in families.values()])

# %% [markdown]
# ## What generalizes (above), and what knows the members (below)

# %%
trained, untrained = (  # pairs by stages
    {key: np.array([results[s]["accuracy"][[part.startswith("stage") for part in results[s].parts]] for s in steps]) for key, steps in each.items()}
    for each in (after, before)
)
rise, blank = ({key: audit.mean_ci(found[:, -1] - found[:, 0]) for key, found in each.items()} for each in (trained, untrained))
added = {key: audit.mean_ci(np.diff((trained[key] - untrained[key])[:, [0, -1]])[:, 0]) for key in untrained}
report.profile(
    [
        {"part": f"stage{i}", "value": audit.mean_ci(each), "network": name, "the SVM sees": sees[size] + said}
        for said, found in (("", trained), (", untrained", untrained)) for (name, size), rows in found.items() for i, each in enumerate(rows.T, 1)
    ],
    hue="the SVM sees", facet="network", null=None, ylabel="test accuracy of an SVM",
    title=f"In {sum(all(added[name, size].low > 0 for size in sees) for name in rated)} of {len(rated)} ResNets and VGGs "
    "training adds more in the last stage than in the first, with few numbers and with all",
)  # fmt: skip

# %%
sizes = {x: zip((part.split(".")[0] for part in results[a].parts), results[a]["activations"].tolist(), strict=True) for x, a in maps.items()}
held = {name: dict(each) for name, each in sizes.items()}  # by its last block, what a part hands on
report.table(
    [
        {"network": name, "features of a map": ", ".join(str(n) for part, n in held[name].items() if part.startswith("stage"))}
        | {f"{sees[size]}{said}": found.get((name, size), "–") for size in sees for said, found in (("", rise), (", untrained", blank))}
        for name in probes
    ],
    caption="Test accuracy of the SVM, last stage minus first",
)

# %%
measures = {"euclidean": "Euclidean (the paper's)", "direction": "direction (1 − cosine)"}
read = {(name, m): disparity.read([results[d] for d in distances[name]], m) for name in probes for m in measures}
stages = {name: [i for i, part in enumerate(results[steps[0]].parts) if part.startswith("stage")] for name, steps in distances.items()}
profiles = {(name, m): [disparity.profile(*found)[i] for i in stages[name]] for (name, m), found in read.items()}
strong = {name: [disparity.strength(e).value for e in profiles[name, "euclidean"]] for name in probes}
begins = {name: max(range(2, len(found)), key=lambda k, found=found: found[k] - found[k - 1]) for name, found in strong.items()}
gains = {key: np.diff(found) for key, found in trained.items()}
slowing, empty = (
    {x: audit.mean_ci((d := np.diff(found[x, numbers]))[:, k - 1] - d[:, : k - 1].mean(axis=1)) for x, k in begins.items() if (x, numbers) in found}
    for found in (trained, untrained)
)
report.profile(
    [{"part": f"stage{i}", "value": e, "network": name, "measure": measures[m]} for (name, m), found in profiles.items() for i, e in enumerate(found, 1)],
    hue="measure", facet="network", ylabel="AUC, unseen against seen by M_h1",
    title=f"Where the disparity grows most, accuracy on {numbers} numbers gains less than before in {sum(e.high < 0 for e in slowing.values())} of {len(probes)} networks",
)  # fmt: skip

# %%
right = {(name, who): np.array([float(results[s][f"accuracy_{who}"]) for s in signals[name]]) for name in probes for who in ("member", "test")}
members, tests = ({name: audit.mean_ci(right[name, who]) for name in probes} for who in ("member", "test"))
lacks = {name: audit.paired_difference(trained[name, numbers][:, k - 1], right[name, "test"]) for name, k in begins.items()}
report.table(
    [
        {
            "network": name,
            "disparity grows most in": f"stage{begins[name] + 1}",
            "paper, onset": {"resnet": "stage4", "vgg": "earlier in vgg19", "atm": "stage3"}[family],
            "gain there minus mean gain before": slowing[name],
            "the same, untrained": empty.get(name, "–"),
            "stage before, minus the network": lacks[name],
        }
        | {"member accuracy": members[name], "test accuracy": tests[name]}
        for family, name in ((family, name) for family in families for name in families[family])
    ],
    paper="Figs. 9 to 11; by Fig. 8 all gain less after stage 3",
    caption=f"Gains: test accuracy of the SVM on {numbers} numbers; disparity by the paper's distance, from stage 3 on; {pairs} pairs",
)

# %%
report.judge(
    claims,
    rises=audit.least(audit.mean_ci(trained[name, whole][:, 2] - trained[name, whole][:, 0]) for name in rated),
    training_adds_with_depth=audit.least(added.values()),
    resnet_stalls=audit.largest(slowing[name] for name in families["resnet"]),
    vgg_complete_before=audit.least(lacks[name] for name in families["vgg"]),
    shallow_vgg_gains_more=audit.paired_difference(*(gains[families["vgg"][i], numbers][:, 2] for i in (0, -1))),
    atm_never_gains=audit.largest(audit.mean_ci(gain) for name in families["atm"] for size in sees for gain in gains[name, size].T),
    checks={"resnet_stalls": {f"accuracy rises with depth in {name}": rise[name, numbers] for name in families["resnet"]}},
    regime={"member accuracy of every network": audit.least(members.values()), "test accuracy of every network": audit.least(tests.values())},
)

# %% [markdown]
# **Caveat.** A linear SVM on few images is a small judge, and how many numbers it sees decides the shape of
# the curve (first figure): the paper's own setting is not known. A VGG whose stage already does as well as the network
# has no more to gain: that it then gains nothing is a ceiling. The stage where the disparity grows most is the largest
# of a few noisy steps. That both meet in one stage is a coincidence of place, not a cause: it is often the last one.

# %%
report.provenance(results)
