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
# # Does augmentation move the disparity, or only weaken it?
#
# **PPTP, Fig. 3** (section 3.3). The probe of Fig. 1 (`fig01_stage_and_block_disparity`), once without and once with random crops and flips.
#
# **The paper says** that augmentation mitigates the disparity where it occurs, and has no influence on *where* it occurs: in stage 4 with and without
# (ResNet18, TinyImageNet).
#
# **It would be wrong if** stage 4 told the halves apart as well with augmentation as without, or if another stage took the lead under augmentation.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (python -m lib.data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer (paper: not stated; conv3-pool gives its 4x4 map in stage 4 at 64 pixels)
pool = 600  # samples in D_all (paper: 100,000)
epochs = 24  # epochs (paper: not stated)
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0 (paper: not stated)
crop = 1  # padding of the random crop, pixels (paper: not stated)
flip = True  # random horizontal flips (paper: yes)
pairs = 8  # pairs of networks, each with its own seed and its own half (paper: one)
margin = 0.02  # an AUC closer to 0.5 than this counts as no disparity
seed = 1  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from lib import audit, lab, report
from lib.localization import disparity
from lib.recipe import Augment, Data, Halves, Model, Schedule, Setup, Signals, self_audit

claims = report.claims(
    report.Claim(
        "weaker_in_stage_4",
        "Augmentation lowers the disparity of stage 4",
        quantity="|AUC − 0.5| of stage 4 without minus with augmentation, direction",
        above=0.0,
        paper="Fig. 3 (d), (h)",
        control="paired: same seeds, same halves",
    ),
    report.Claim(
        "stage_4_leads_without",
        "Without augmentation the disparity is in stage 4",
        quantity="|AUC − 0.5| of stage 4 minus the largest of stages 1-3, direction",
        above=0.0,
        paper="Fig. 3 (a)-(d)",
        control="the same contrast over pairs of models",
    ),
    report.Claim(
        "stage_4_leads_with",
        "With augmentation the disparity is in stage 4 too",
        quantity="|AUC − 0.5| of stage 4 minus the largest of stages 1-3, direction",
        above=0.0,
        paper="Fig. 3 (e)-(h)",
        control="the same contrast over pairs of models",
    ),
)
claims

# %% [markdown]
# ## The same pairs, trained twice
# Each pair keeps its seed and its half; only the schedule differs. In a small pool a strong crop removes the overfitting, and with it all there is to see:
# the usual pad is an eighth of the side, `quick` takes half of that.


# %%
def trained(augment):
    schedule = Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=augment)
    halves = Halves(pool, seed=seed)
    return Setup(Data(data, pixels), halves, Model(model, width, stem), schedule, pairs, seed, precision).pairs()


probes = {"without": trained(None), "with": trained(Augment(crop, flip))}
distances = {name: [pair.distance() for pair in probe] for name, probe in probes.items()}
accuracies = {name: [Signals(pair.whole) for pair in probe] for name, probe in probes.items()}

# %%
results = lab.realize(distances, accuracies, self_audit(probes["without"]))

# %% [markdown]
# ## Stage by stage

# %%
parts = results[distances["with"][0]].parts
read = {
    (name, measure): disparity.read([results[d] for d in chosen], measure)
    for name, chosen in distances.items()
    for measure in ("euclidean", "direction")
}
profiles = {key: disparity.profile(*found) for key, found in read.items()}
shown = [i for i, part in enumerate(parts) if part.startswith("stage")]
firsts = {name: results[chosen[0]] for name, chosen in distances.items()}
report.histograms(
    {
        (f"{name} augmentation", parts[i]): (one["direction"][i][one["seen_b"]], one["direction"][i][~one["seen_b"]])
        for name, one in firsts.items()
        for i in shown
    },
    xlabel="direction of features: 1 − cosine between M_all and M_h1",
    title=f"One pair of networks, without and with augmentation: {model}, width {width}, {data}",
    notes={(f"{name} augmentation", parts[i]): f"AUC {profiles[name, 'direction'][i].value:.2f}" for name in firsts for i in shown},
)

# %%
report.profile(
    [
        {"part": part, "value": estimate, "augmentation": name, "measure": measure}
        for (name, measure), profile in profiles.items()
        for part, estimate in zip(parts, profile, strict=True)
    ],
    hue="augmentation",
    facet="measure",
    title=f"Direction, stage 4: AUC {profiles['without', 'direction'][parts.index('stage4')].value:.2f} without augmentation, "
    f"{profiles['with', 'direction'][parts.index('stage4')].value:.2f} with it",
    ylabel="AUC, unseen against seen by M_h1",
)

# %%
report.table(
    [
        {"augmentation": name, "test accuracy of M_all": audit.over([results[s]["accuracy_test"] for s in accuracies[name]])}
        | {"train accuracy": audit.over([results[s]["accuracy_member"] for s in accuracies[name]])}
        | {f"{measure}, stage 4": profiles[name, measure][parts.index("stage4")] for measure in ("euclidean", "direction")}
        for name in distances
    ],
    caption=f"AUC of the distance over {pairs} pairs",
)

# %% [markdown]
# ## Verdicts

# %%
early, last = [parts.index(f"stage{i}") for i in (1, 2, 3)], parts.index("stage4")
report.judge(
    claims,
    weaker_in_stage_4=disparity.versus(read["without", "direction"], read["with", "direction"], last),
    stage_4_leads_without=disparity.contrast(*read["without", "direction"], last, early),
    stage_4_leads_with=disparity.contrast(*read["with", "direction"], last, early),
)

# %% [markdown]
# **Caveat.** Augmentation also lowers the training accuracy that a small network reaches in a fixed number of epochs: it works partly by training less.

# %%
report.provenance(results)
