# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Explore: which defence hides whom, and at which cost?
#
# Each point is a defence at one strength, on networks of the same members. The grey line joins the
# epochs of ordinary training: early stopping, the control. A purple line joins the strengths of a
# defence. A defence is useful where its point lies below the grey line, or to its right. Shadow
# models are trained with the defence, so the attacker knows it.
#
# Click a point, or play over all of them: the figures below compare its ROC curve, its attack
# scores and its most exposed members with those of ordinary training. The *exposure* of a member is
# the share of the target's non-members with a lower attack score, mean over the networks that
# trained on it.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data)
pixels = 16  # side of the images, pixels, after area resize
model = "resnet10"  # architecture
width = 8  # channels of stage 1
pool = 600  # samples from which each network draws half as its members
dev = 300  # samples outside the pool, not used here
reference = 300  # samples outside the pool: non-members for the score of CWRF
test = 600  # test samples
epochs = 12  # epochs of ordinary training
stops = [1, 2, 3, 4, 5, 6, 8, 10]  # earlier epochs that are shown
retrain_epochs = 10  # epochs after rewinding or pruning
batch = 64  # samples a step
lr = 0.005  # learning rate of Adam, cosine to 0
relax = [0.3, 0.6, 0.8]  # RelaxLoss: losses that it aims at, nats
ccl = [0.1]  # CCL: shares of the cross-entropy
hamp = [0.8]  # HAMP: entropies of the soft labels, shares of ln C for C classes
cskd = [3.0]  # CS-KD: weights
sub_models = 3  # SELENA: networks that label the members
leave_out = 1  # SELENA: how many of them never see a given member
noise = [0.05]  # DP-SGD: noise multipliers
pads = [1, 2]  # augmentation: pixels of padding before a crop
rhos = [0.05]  # SAM: how far uphill gradients are taken
risky_from = "stage3"  # PPTP: the first stage that is rewound
share = 0.05  # CWRF: share of the weights that is rewound
balance = 0.5  # CWRF: lambda of the score
score_steps = 30  # CWRF: updates of the score
sparsity = 0.6  # share of the weights that is pruned
ppb = [2.0, 4.0]  # PPB: weights
rounds = 2  # WeMem: rounds of pruning
judges = 16  # WeMem: networks that give the memorization scores
score_epochs = 8  # WeMem: epochs of each of them
lambdas = [0.1]  # WeMem: lambda_r, weight of the penalty (RMR)
window = 12  # WeMem: members of a class in the window (RSW)
step = 4  # WeMem: ranks by which the window moves in an epoch
shadows = 10  # networks; each is attacked by the others, without its complement
seed = 101  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import lab, recipe, report
from leak_atlas.explore.atlas import Atlas
from leak_atlas.explore.instrument import Instrument

# %%
study = recipe.AtlasStudy(
    data=recipe.Data(data, pixels),
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
objectives = {
    "RelaxLoss": {f"{alpha:g} nats": recipe.RelaxLoss(alpha) for alpha in relax},
    "CCL": {f"share {alpha:g}": recipe.CCL(alpha, beta=1.0) for alpha in ccl},
    "HAMP": {f"entropy {entropy:g}": recipe.HAMP(entropy) for entropy in hamp},
    "CS-KD": {f"weight {weight:g}": recipe.CSKD(weight=weight) for weight in cskd},
}
networks = {}
for defence, strengths in objectives.items():
    networks |= study.from_scratch(defence, strengths)
networks |= study.inside_stages("RelaxLoss", objectives["RelaxLoss"])
networks |= study.inside_weights("RelaxLoss", objectives["RelaxLoss"])
networks |= study.distilled(sub_models, leave_out)
networks |= study.privately(noise)
crops = {f"padding {pad}": {"augment": recipe.Augment(pad)} for pad in pads}
networks |= study.with_schedules("augmentation", crops)
networks |= study.with_schedules("SAM", {f"rho {rho:g}": {"sharpness": rho} for rho in rhos})
networks |= study.after_pruning("PPB", {f"weight {weight:g}": recipe.PPB(weight) for weight in ppb})
for risky in lambdas:
    in_rounds = study.in_rounds(recipe.RMR(risky), recipe.Window(window, step))
    networks["SWMR", f"lambda {risky:g}"] = in_rounds

# %%
variants = {f"{defence}, {strength}": one for (defence, strength), one in networks.items()}
attackers = {
    "LiRA": recipe.LiRA(),
    "RMIA": recipe.RMIA(),
    "confidence": recipe.Threshold("confidence", sign="shadows"),
}
atlas = Atlas(variants, study.ordinary, stops, attackers)
results = lab.realize([atlas.measured(attack) for attack in attackers])

# %%
app = Instrument(atlas)
app

# %% [markdown]
# **Setup.** In `quick`, the networks are those of `atlas/defences`, with fewer defences and
# strengths.
#
# **Limits.** An interval is over the networks, which share one pool and attack each other. The
# members shown are the extremes of many. DP-SGD has GroupNorm, the other networks have BatchNorm,
# so early stopping of its networks is not shown. Nothing here is a verdict: whether a defence beats
# early stopping is judged in `atlas/defences`.

# %%
report.provenance(results)
