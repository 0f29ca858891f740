# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does CWRF's change of a leak depend on how many shadow models the attacker has?
#
# **CWRF, Fig. 6** (appendix C.1; CIFAR-100, ResNet18, LiRA). The attack of Fig. 5b again, with more shadow models.
# **The paper says** that every method leaks more than in Fig. 5b, and that RelaxLoss and CCL still resist better
# inside CWRF, at slightly better accuracy. The number of shadows is lost.
#
# **It would be wrong if** more shadows found no more leak, or CWRF's change turned under them. All models are targets
# under each attacker: with few shadows they are attacked in groups, each model by the others of its group. So nothing
# but the shadows differs. Ours beside it: whether a defence looks better to few shadows than it is.
#
# In `quick` some of the networks are `tab03`'s: what CWRF changes at r = 5 % is judged there, here only whether shadows
# matter to it. Both numbers of shadows in `quick`, 4 and 16, lie about the paper's *few*, 8; its *more* is not reached.
#
# Rules, sizes and rates were settled on draw 0, a referee's objections in hand, and are judged on this one (seed 1).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: CIFAR-100
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (paper: 64)
pool = 600  # samples from which each model draws half (paper: lost)
dev = 300  # samples outside the pool, not looked at here (paper: names none)
reference = 300  # non-members outside the pool, for the score alone (paper: lost)
test = 600  # test samples (paper: all)
r = 0.05  # share of the weights that is rewound (paper: a grid; lost)
balance = 0.5  # lambda of the score, chosen beforehand (paper: lost)
score_steps = 30  # updates of the score (paper: lost; "tens")
relax_alpha = 0.3  # RelaxLoss target loss, nats (paper: as its authors)
ccl_alpha = 0.1  # CCL: share of the cross-entropy (its authors' example: .5)
epochs = 12  # epochs from scratch (paper: lost)
retrain_epochs = 6  # epochs of retraining; even, as RelaxLoss's last epoch matters (paper: lost)
batch = 64  # samples a step (paper: lost)
lr = 0.005  # learning rate of Adam, cosine to 0, at the start of each training (paper: lost)
groups = [6, 18]  # models that share out as targets and shadows: two less are a target's shadows (paper: 8 shadows, and lost)
learnt = 0.6  # least test accuracy of a network that has learnt (ours)
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
import numpy as np
from leak_atlas import audit, lab, recipe, report

claim, change = report.Claim, "inside CWRF minus from scratch"
few, many = (f"{size - 2} shadows" for size in (groups[0], groups[-1]))
said = {"paper": "Fig. 6, appendix C.1", "control": "the same targets; every shadow walks the target's whole chain", "margin": 0.02}
alike = {name: said[name] for name in ("paper", "control")}
ours = said | {"paper": "", "ours": "our question", "margin": 0.01}
moved = f"CWRF's change of LiRA's AUC, {many} minus {few}"
gap = "mean of both defences from scratch minus no defence"
claims = report.claims(
    claim("more_leak", "Methods leak more to more shadows, in the mean", f"AUC, {many} minus {few}, mean of all methods", above=0.01, **said),
    claim("defended_more", "Of the defended more shadows find more than of the undefended", f"AUC, {many} minus {few}, {gap}", above=0.0, **ours),
    claim("relaxloss_alike", "Shadows move what CWRF changes for RelaxLoss by less than .03", moved, within=0.03, **alike),
    claim("ccl_alike", "Shadows move what CWRF changes for CCL by less than .03", moved, within=0.03, **alike),
    regime={"undefended member accuracy": 0.95, "undefended test accuracy": learnt},
)
claims

# %% [markdown]
# ## The same targets, few shadows and many

# %%
scratch, inside = "from scratch", "inside CWRF"
defences = {"RelaxLoss": recipe.RelaxLoss(relax_alpha), "CCL": recipe.CCL(ccl_alpha, beta=1.0)}
study = recipe.RewindStudy(
    recipe.Data(data, pixels),
    recipe.Model(model, width),
    recipe.Schedule(epochs, batch, "adam", lr=lr),
    retraining=retrain_epochs,
    criterion=recipe.Vulnerability(weight=balance, steps=score_steps, batch=batch),
    pool=pool,
    test=test,
    models=groups[-1],
    dev=dev,
    reference=reference,
    seed=seed,
    precision=precision,
)
ways = {("no defence", scratch): study.ordinary}
for d, defence in defences.items():
    ways |= {(d, scratch): study.defended(defence), (d, inside): study.inside(r, defence)}

attacks = {}
for way, each in ways.items():
    for size in groups:
        parts = [recipe.Population(each.states[k : k + size]) for k in range(0, groups[-1], size)]
        attacks[way, f"{size - 2} shadows"] = [part.attack(recipe.LiRA()) for part in parts]
signals = {way: each.signals() for way, each in ways.items()} | {"rewound": study.rewound(r).signals()}
results = lab.realize(attacks, signals, recipe.self_audit(study.ordinary))

# %%
areas = {key: np.concatenate([audit.auc(results[one]["scores"], results[one]["member"]) for one in each]) for key, each in attacks.items()}
effect = max(one.design_effect for each in attacks.values() for one in each)
accuracy = {way: [float(results[one]["accuracy_test"]) for one in each] for way, each in signals.items()}
inner = {way: [float(results[one]["accuracy_member"]) for one in each] for way, each in signals.items()}


def differ(one, other):
    """Of the targets' mean AUCs; targets are each other's shadows, which widens the interval."""
    return audit.paired_difference(one, other, design_effect=effect)


# %% [markdown]
# ## What CWRF changes, by the number of shadows

# %%
counts = [f"{size - 2} shadows" for size in groups]
changed = {(d, count): differ(areas[(d, inside), count], areas[(d, scratch), count]) for d in defences for count in counts}
shift = {d: differ(*(areas[(d, inside), c] - areas[(d, scratch), c] for c in (many, few))) for d in defences}
rows = [{"shadows": c.split()[0], "loss": d, "value": changed[d, c]} for d in defences for c in counts]
far = max(abs(one.value) for one in shift.values())
title = f"From {few.split()[0]} shadows to {many.split()[0]} CWRF's change of an AUC moves by {far:.3f} at most"
report.profile(rows, "shadows", hue="loss", null=0.0, level="no change", xlabel="shadows", ylabel=f"AUC of LiRA, {change}", title=title)

# %%
report.table(
    [
        {"trained with": d, "way": way, "member": audit.mean_ci(inner[d, way]), "test": audit.mean_ci(accuracy[d, way])}
        | {f"AUC, {c}": audit.mean_ci(areas[(d, way), c], design_effect=effect) for c in counts}
        | {f"{many} minus {few}": differ(areas[(d, way), many], areas[(d, way), few])}
        for d, way in ways
    ],
    caption=f"Mean over the same {groups[-1]} targets. Right after the rewind members are {audit.mean_ci(inner['rewound'])}",
)

# %% [markdown]
# ## Verdicts

# %%
plain = "no defence", scratch
rewound = {"accuracy on members falls right after the rewind": audit.paired_difference(inner[plain], inner["rewound"])}
acts = {d: {f"{d} lowers the accuracy on members": audit.paired_difference(inner[plain], inner[d, scratch])} for d in defences}
gains = {way: areas[way, many] - areas[way, few] for way in ways}
report.judge(
    claims,
    more_leak=differ(*(np.mean([areas[way, count] for way in ways], axis=0) for count in (many, few))),
    defended_more=differ(np.mean([gains[d, scratch] for d in defences], axis=0), gains[plain]),
    **{f"{d.lower()}_alike": shift[d] for d in defences},
    checks={f"{d.lower()}_alike": rewound | acts[d] for d in defences} | {"defended_more": acts["RelaxLoss"] | acts["CCL"]},
    regime={"undefended member accuracy": audit.mean_ci(inner[plain]), "undefended test accuracy": audit.mean_ci(accuracy[plain])},
)

# %% [markdown]
# **Caveat.** LiRA pools its variances over all samples, which is what few shadows allow; with many, variances of each
# sample's own may find more. Groups share no shadows, but all share the pool. Where an AUC nears 1 there is less room:
# that alone makes a large leak gain less from more shadows.

# %%
report.provenance(results, seed=seed, pilots=pilots)
