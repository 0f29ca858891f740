# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a silent stage keep the secret?
#
# **Our own**, on the premise of PPTP (section 3.2). The paper compares two networks and calls a stage safe where
# samples that both have seen and samples that only one has seen are equally far apart; PPTP freezes such stages for
# good and retrains the rest with a privacy objective. But "two networks do not differ there" is not "one network does
# not tell". So we ask one network: an attacker who knows of half of the pool who was a member learns to tell members
# by a stage's features, and is judged on the other half.
#
# **We say** that stage 4 tells members, as the disparity has it; that stages 1 and 2 do not; and that stage 3, frozen
# as safe on TinyImageNet (Tab. 6), tells them too, although its disparity is silent. Retraining quiets stage 4. Of what
# is held nothing is claimed: it is bit for bit what ordinary training left, so it tells after PPTP what it told before.
#
# **It would be wrong if** the two readings agreed: stage 3 no better than a guess. By direction, a reading of our own,
# they may agree. **Beside the point if** an *untrained* network's features told members as well, or if any retraining
# quieted stage 4 as much (controls: the same classifier at initialisation; the same stages retrained plainly).
#
# alpha is one that acts: at .3 PPTP's member accuracy is .975, at .6 it is .93 (draw 0 of `quick`).
# Rules were settled on draw 0 too, a referee's objections in hand, and are judged on this one (seed 1).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data)
pixels = 16  # side of the images, pixels, after area resize
model = "resnet10"  # architecture
width = 8  # channels of stage 1
stem = "conv3"  # first layer
pool = 600  # samples: each attacked model draws half; M_all sees all and M_h1 half
dev = 300  # samples outside the pool, unused here as is the reference: the networks are those of Fig. 13
reference = 300  # samples outside the pool
test = 600  # samples of the test part that are looked at (paper: not stated)
risky_from = "stage4"  # first rewound stage (PPTP, Tab. 6: stage4 on TinyImageNet, stage3 on CIFAR-100)
alpha = 0.6  # RelaxLoss target loss, nats
epochs = 12  # epochs of the attacked models, as in fig12
retrain_epochs = 5  # epochs of retraining, as in fig12
pair_epochs = 12  # epochs of the pairs behind the disparity, as in own01
batch = 64  # samples a step
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0, at the start of each training
augment = 0  # padding of the random crop with flips, pixels; 0: none
models = 12  # attacked models, in complement pairs; those of fig12 and two more
pairs = 12  # pairs of networks behind the disparity
margin = 0.02  # a disparity closer to 0.5 than this is silent
least = 0.05  # smallest effect on the classifier's AUC that is worth having: it is judged on few samples of few models
learnt = 0.6  # least test accuracy of a network that has learnt
seed = 101  # seed of designs, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

from leak_atlas import audit, lab, report
from leak_atlas.localization import disparity
from leak_atlas.recipe import Augment, Data, Halves, Model, RandomHalves, RelaxLoss, Schedule, Setup, StageMembership, self_audit

ours, who = {"margin": least, "ours": True}, "AUC of the classifier, "
claims = report.claims(
    report.Claim("stage_4_tells", "Stage 4 tells members", f"{who}stage 4, minus the untrained network's", above=0.0, control="untrained", **ours),
    report.Claim("stage_3_tells", "Stage 3 tells members", f"{who}stage 3, minus the untrained network's", above=0.0, control="untrained", **ours),
    report.Claim("early_are_silent", "Stages 1 and 2 do not tell members", f"|{who}minus 1/2|, larger one", below=least, control="stages 3 and 4", **ours),
    report.Claim("silent_by_distance", "By the paper's distance, stage 3 is silent", "|AUC of the Euclidean distance minus 1/2|, stage 3",
                 below=margin, paper="Fig. 1, 3", control="stage 4, same pairs", margin=margin),
    report.Claim("direction_sees_it", "By direction, stage 3 is not silent", "AUC of the direction minus 1/2, stage 3",
                 above=margin, ours=True, control="free of the features' length", margin=margin),
    report.Claim("pptp_quiets", "PPTP lowers what stage 4 tells", f"{who}stage 4, ordinary minus PPTP", above=0.0, control="the same models before PPTP", **ours),
    report.Claim("defence_quiets", "The defence does more than retraining alone", f"{who}stage 4, retrained with cross-entropy minus PPTP",
                 above=0.0, control="same stages rewound, as many epochs", **ours),
    report.Claim("as_well_as_scratch", "PPTP leaves no more in stage 4 than the same defence from scratch", f"{who}stage 4, PPTP minus from scratch",
                 below=0.0, control="same alpha, and as many epochs; the larger difference", **ours),
    regime={"member accuracy, ordinary": 0.95, "test accuracy, ordinary": learnt},
)  # fmt: skip
claims

# %% [markdown]
# ## States of a network that is asked, and pairs that are compared

# %%
augmented = Augment(augment) if augment else None
long, short, of_pairs = (Schedule(n, batch, optimizer, lr, nesterov=True, augment=augmented) for n in (epochs, retrain_epochs, pair_epochs))
source, net, private = Data(data, pixels), Model(model, width, stem), RelaxLoss(alpha)
setup = Setup(source, RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference), net, long, models, seed, precision)
ordinary = setup.trained()
rewound = ordinary.rewind(risky_from)
states = {
    "untrained": ordinary.at("init"),
    "ordinary": ordinary,
    "PPTP": rewound.freeze(risky_from).train(short, private),
    "retrained with cross-entropy": rewound.freeze(risky_from).train(short),
    "RelaxLoss from scratch": setup.trained(private),
    (few := f"the same, {retrain_epochs} epochs"): setup.trained(private, short),
}
asked = {name: [StageMembership(state) for state in each] for name, each in states.items()}
signals = {name: each.signals() for name, each in (states | {"rewound": rewound}).items()}
compared = [pair.distance() for pair in Setup(source, Halves(pool, seed=seed), net, of_pairs, pairs, seed, precision).pairs()]
results = lab.realize(asked, signals, compared, self_audit(ordinary))

# %% [markdown]
# ## Two readings of every stage
# Left, how well one network's features tell members. Right, how well the distance between two networks tells what one
# of them has seen (either side of 0.5 counts).

# %%
parts = results[compared[0]].parts
areas = {name: [audit.auc(results[a]["scores"], results[a]["member"]) for a in each] for name, each in asked.items()}
# The two models of a complement pair share the half of the pool that is known, so they count as little more than one.
shared = 2.0
tells = {name: [audit.mean_ci(part, bounds=(0, 1), design_effect=shared) for part in zip(*found, strict=True)] for name, found in areas.items()}
euclidean, direction = (disparity.profile(*disparity.read([results[c] for c in compared], measure)) for measure in ("euclidean", "direction"))


def more(one, other, part):
    """AUC of the classifier on a part in one state minus that in another, paired over models."""
    i = parts.index(part)
    return audit.paired_difference([a[i] for a in areas[one]], [a[i] for a in areas[other]], design_effect=shared)


begins = [disparity.onset(each, None, parts, margin) or "no stage" for each in (euclidean, direction)]
first = next((part for part in parts if part.startswith("stage") and more("ordinary", "untrained", part).low > 0), "no stage")
report.profile(
    [
        {"part": part, "value": estimate, "series": name, "reading": reading}
        for reading, found in {
            "one network asked: membership": tells,
            "two networks compared: disparity": {"Euclidean distance (the paper's)": euclidean, "direction (1 − cosine)": direction},
        }.items()
        for name, series in found.items()
        for part, estimate in zip(parts, series, strict=True)
    ],
    hue="series",
    facet="reading",
    title=f"Members can be told from {first} on; the disparity begins in {begins[0]} by the paper's distance, in {begins[1]} by direction",
    ylabel="AUC",
)

# %%
report.table(
    [{"part": part} | {name: series[i] for name, series in tells.items()}
     | {"disparity": euclidean[i], "paper": {"stage4": "risky"}.get(part, "safe" if part.startswith("stage") else None)} for i, part in enumerate(parts)],
    paper="section 3.2 and Tab. 6, TinyImageNet",
    caption=f"AUC: of the membership classifier in {len(states)} states of {models} models; of the Euclidean distance, over {pairs} pairs",
)  # fmt: skip

# %%
accuracy = {name: {r: [float(results[s][f"accuracy_{r}"]) for s in each] for r in ("member", "test")} for name, each in signals.items()}
report.table(
    [{"network": name} | {f"{role} accuracy": audit.mean_ci(values) for role, values in found.items()} for name, found in accuracy.items()],
    caption=f"Did the treatments act? RelaxLoss with alpha {alpha:g}; *rewound*: {risky_from} and all after it, before any retraining",
)

# %% [markdown]
# ## Verdicts

# %%
acts = {
    "PPTP lowers member accuracy": audit.paired_difference(accuracy["ordinary"]["member"], accuracy["PPTP"]["member"]),
    "rewinding lowers member accuracy": audit.paired_difference(accuracy["ordinary"]["member"], accuracy["rewound"]["member"]),
}
report.judge(
    claims,
    stage_4_tells=more("ordinary", "untrained", "stage4"),
    stage_3_tells=more("ordinary", "untrained", "stage3"),
    early_are_silent=audit.largest(disparity.strength(tells["ordinary"][parts.index(part)]) for part in ("stage1", "stage2")),
    silent_by_distance=disparity.strength(euclidean[parts.index("stage3")]),
    direction_sees_it=replace(
        direction[parts.index("stage3")], **{k: getattr(direction[parts.index("stage3")], k) - 0.5 for k in ("value", "low", "high")}
    ),
    pptp_quiets=more("ordinary", "PPTP", "stage4"),
    defence_quiets=more("retrained with cross-entropy", "PPTP", "stage4"),
    as_well_as_scratch=audit.largest(more("PPTP", one, "stage4") for one in ("RelaxLoss from scratch", few)),
    checks=dict.fromkeys(("pptp_quiets", "defence_quiets", "as_well_as_scratch"), acts),
    regime={f"{role} accuracy, ordinary": audit.mean_ci(accuracy["ordinary"][role]) for role in ("member", "test")},
)

# %% [markdown]
# **Caveat.** A classifier that fails to tell members shows no more than its own limits: its AUC is a lower bound on what
# a stage gives away. This attacker knows half of the members and looks inside the network; the paper's attackers see
# its output alone, where what a frozen stage tells may not arrive. Equal alpha is not equal fit: see the accuracies.

# %%
report.provenance(results)
