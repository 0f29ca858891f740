# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a defence collapse alone, and does CWRF help it?
#
# **CWRF, Fig. 5b** (CIFAR-100, ResNet18). **The paper says** that HAMP alone does not converge, but does inside CWRF,
# and that CWRF steadies training: accuracy varies less from run to run (in Tab. 3, over the ResNet18's three defences,
# by .33 points in place of .64 in the mean: the table shows ours, unjudged, since that takes more runs). It also says
# that RelaxLoss gains on both axes and what CCL does to attacks: in `quick` those are `tab03`'s and `fig08`'s claims.
#
# **It would be wrong if** HAMP alone learnt as well, or lost by CWRF. After cross-entropy with *nothing* rewound, at
# equal epochs, is our control in the table. Both may depend on a defence's form: the paper adopts official code, which
# takes HAMP's divergence as the mean over classes where HAMP's paper sums, so that under Adam weight decay weighs more,
# and gives CCL's whole loss a factor of .05. Both forms of both are here, and HAMP's other published strength.
#
# CCL's share .5, its authors' example, does nothing in `quick` (draw 0: LiRA's AUC .891 against .886 undefended, +.005
# [−.010, .020]), so it has .1. Rules, sizes and rates were settled on draw 0, a referee's objections in hand, and are
# judged on this one (seed 1).

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
hamp_entropy = 0.5  # HAMP: entropy of the soft labels, share of ln C (its authors, CIFAR-100)
hamp_weight = 0.5  # HAMP: weight of the output's entropy, beside a summed divergence (its authors, CIFAR-100)
code_weight = 0.005  # the same in the official code, beside a mean divergence (its authors, CIFAR-100)
strong = [0.95, 0.01]  # HAMP at its other published strength: entropy, weight (its authors, CIFAR-10)
ccl_alpha = 0.1  # CCL: share of the cross-entropy (its authors' example: .5)
ccl_beta = 0.05  # CCL, official: factor of the whole loss (its authors' example)
epochs = 12  # epochs from scratch (paper: lost)
retrain_epochs = 6  # epochs of retraining; even, as RelaxLoss's last epoch matters (paper: lost)
batch = 64  # samples a step (paper: lost)
lr = 0.005  # learning rate of Adam, cosine to 0, at the start of each training (paper: lost)
runs = 10  # networks of each kind, in complement pairs (paper: three)
learnt = 0.6  # least test accuracy of a network that has learnt (ours)
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
import numpy as np
from leak_atlas import audit, lab, recipe, report
from leak_atlas.data.designs import Role
from scipy.special import softmax

scratch, inside, tuned = "from scratch", "inside CWRF", "nothing rewound"
claim, change = report.Claim, f"{inside} minus {scratch}"
said = {"paper": "Fig. 5b, section 5.2", "control": "one r; paired over runs", "margin": 0.02}
forms = {"paper": "official implementations", "control": "the same runs' seeds and members"}
converged = 0.8
claims = report.claims(
    claim("hamp_alone", "HAMP alone does not converge in some form", f"test accuracy minus {converged:g} of the undefended, least", below=0.0, **said),
    claim("hamp_gains", "HAMP is more accurate inside CWRF", f"test accuracy, {change}, mean of its three forms", above=0.01, **said),
    claim("strong_keeps", "HAMP's other strength loses less than two points inside CWRF", f"test accuracy, {change}, HAMP strong", above=-0.02, **said),
    claim("hamp_form", "HAMP learns as well in its official form", f"test accuracy {scratch}, official minus its paper's", within=0.02, **forms),
    claim("ccl_form", "CWRF changes CCL's leak as much in the official form", f"AUC of LiRA, {change}, official minus plain", within=0.04, **forms),
    regime={"undefended member accuracy": 0.95, "undefended test accuracy": learnt},
)  # fmt: skip
claims

# %% [markdown]
# ## Three ways of each defence, in each form

# %%
defences = {
    "RelaxLoss": recipe.RelaxLoss(relax_alpha),
    "HAMP": recipe.HAMP(hamp_entropy, hamp_weight),
    "HAMP, code": recipe.HAMP(hamp_entropy, code_weight, form="code"),
    "HAMP, strong": recipe.HAMP(*strong),
    "CCL": recipe.CCL(ccl_alpha, beta=1.0),
    "CCL, code": recipe.CCL(ccl_alpha, beta=ccl_beta),
}
study = recipe.RewindStudy(
    recipe.Data(data, pixels),
    recipe.Model(model, width),
    recipe.Schedule(epochs, batch, "adam", lr=lr),
    retraining=retrain_epochs,
    criterion=recipe.Vulnerability(weight=balance, steps=score_steps, batch=batch),
    pool=pool,
    test=test,
    models=runs,
    dev=dev,
    reference=reference,
    seed=seed,
    precision=precision,
)
ways = {("no defence", scratch): study.ordinary, ("no defence", "right after the rewind"): study.rewound(r)}
for d, defence in defences.items():
    ways |= {(d, scratch): study.defended(defence), (d, inside): study.inside(r, defence)}
    if "code" not in d:
        ways[d, tuned] = study.tuned(defence)
signals = {way: each.signals() for way, each in ways.items()}
attacks = {((d, way), "LiRA"): ways[d, way].attack(recipe.LiRA()) for d in defences if d.startswith("CCL") for way in (scratch, inside)}
results = lab.realize(signals, attacks, recipe.self_audit(study.ordinary))
found = audit.Comparison.of(results, signals, attacks)
test_of, inner = (
    {way: np.array([float(results[one][f"accuracy_{part}"]) for one in each]) for way, each in signals.items()} for part in ("test", "member")
)


def sureness(way):
    """Mean probability of the most probable class, over members: `(runs,)`."""
    every = [softmax(results[one]["logits"][results[one]["role"] == Role.MEMBER], axis=1) for one in signals[way]]
    return np.array([each.max(axis=1).mean() for each in every])


# %% [markdown]
# ## Accuracy, and by how much it varies

# %%
plain = "no defence", scratch
low = min((d for d in defences if d.startswith("HAMP")), key=lambda d: test_of[d, scratch].mean())
rows = [{"defence": d, "way": way, "value": audit.mean_ci(test_of[d, way])} for d in defences for way in (scratch, tuned, inside) if (d, way) in ways]
share = 100 * test_of[low, scratch].mean() / test_of[plain].mean()
strong_loses = audit.paired_difference(test_of["HAMP, strong", inside], test_of["HAMP, strong", scratch])
points = f"{'gains' if strong_loses.value > 0 else 'loses'} {abs(100 * strong_loses.value):.0f} points"
title = f"From scratch HAMP keeps {share:.0f} % of the undefended accuracy or more; inside CWRF the strong form {points}"
report.against_paper(rows, "defence", hue="way", xlabel="test accuracy", title=title)

# %%
vary = {way: np.mean([100 * test_of[d, way].std(ddof=1) for d in defences]) for way in (scratch, inside)}
report.table(
    [
        {"trained with": d, "way": way, "member": audit.mean_ci(inner[d, way]), "test": audit.mean_ci(each)}
        | {"deviation of runs, points": f"{100 * each.std(ddof=1):.2f}"}
        | ({"LiRA, AUC": found.leak((d, way), "LiRA")["auc"]} if ((d, way), "LiRA") in attacks else {})
        for (d, way), each in test_of.items()
    ],
    caption=f"{runs} runs, each with members, initialisation and order of its own. Mean deviation {vary[scratch]:.2f} points {scratch}, "
    f"{vary[inside]:.2f} {inside}; Tab. 3 prints .23 to 1.21 over three runs",
)

# %% [markdown]
# ## Verdicts

# %%
border, hamps = converged * test_of[plain], [d for d in defences if d.startswith("HAMP")]
gain = np.mean([test_of[d, inside] - test_of[d, scratch] for d in hamps], axis=0)
by_form = [found.reached(((d, inside), "LiRA"), number="auc") - found.reached(((d, scratch), "LiRA"), number="auc") for d in ("CCL, code", "CCL")]
effect = max(each.design_effect for each in attacks.values())
softer = {d: {f"{d}: less sure of members": audit.paired_difference(sureness(plain), sureness((d, scratch)))} for d in hamps}
lower = {d: {f"{d}: less accurate on members": audit.paired_difference(inner[plain], inner[d, scratch])} for d in ("CCL", "CCL, code")}
acts = {"accuracy on members falls right after the rewind": audit.paired_difference(inner[plain], inner["no defence", "right after the rewind"])}
report.judge(
    claims,
    hamp_alone=audit.least(audit.paired_difference(test_of[d, scratch], border) for d in hamps),
    hamp_gains=audit.mean_ci(gain),
    strong_keeps=strong_loses,
    hamp_form=audit.paired_difference(test_of["HAMP, code", scratch], test_of["HAMP", scratch]),
    ccl_form=audit.paired_difference(*by_form, design_effect=effect),
    checks={"hamp_alone": softer["HAMP"] | softer["HAMP, code"] | softer["HAMP, strong"], "hamp_form": softer["HAMP"] | softer["HAMP, code"]}
    | {"hamp_gains": acts, "strong_keeps": acts, "ccl_form": acts | lower["CCL"] | lower["CCL, code"]},
    regime={"undefended member accuracy": audit.mean_ci(inner[plain]), "undefended test accuracy": audit.mean_ci(test_of[plain])},
)

# %% [markdown]
# **Caveat.** The paper does not say what counts as converging; four fifths of the undefended accuracy is ours. Ten
# classes in `quick`: HAMP's strength is that for a hundred, the lack of samples is real, the number of classes is not.
# Runs differ in their members too, which adds the same to every way.

# %%
report.provenance(results)
