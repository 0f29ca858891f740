# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a setting of our grid match the paper's accuracy without a defence?
#
# **The paper.** Fang & Kim (2026), Tab. 3: the undefended ResNet18 has a test accuracy of 79.44 %
# on CIFAR-10. Our copy of the paper's text lacks its number of samples (Tab. 4), learning rate,
# batch size and epochs.
#
# **Setup.** Networks are trained without a defence at each setting of a grid of pool sizes and
# learning rates (in `quick` one pool size and two rates). Half of a pool are members.
#
# **What decides.** The setting with the nearest test accuracy is judged. The answer is yes if the
# 95 % interval of its accuracy minus the paper's lies between −.02 and .02 (our border). This
# setting is then our guess of the paper's.
#
# **Controls.**
#
# 1. *CIFAR-10*, the paper's data: `quick` has other data, so its claim is not tested (*inert*).
#    `desk-cpu` has 16 x 16 pixels (paper: 32).
# 2. *The leak is not measured*: a choice by the leak would bias the page `tab03_cifar10`.
# 3. *The whole grid* is shown, not only the nearest setting.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: CIFAR-10
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (the published architecture: 64)
pools = [600]  # pool sizes; each network draws half of a pool (paper: lost, our copy lacks it)
lrs = [0.001, 0.005]  # Adam's learning rates at the start; they fall to 0, cosine (paper: lost)
epochs = 12  # epochs (paper: lost)
batch = 64  # samples a step (paper: lost)
dev = 300  # samples outside the pool, not used here (paper: names none)
reference = 300  # samples outside the pool, not used here
test = 600  # test samples (paper: not stated)
printed = 0.7944  # test accuracy in Tab. 3 (the ViT there: .5645)
runs = 10  # networks at each setting (paper: 3)
seed = 101  # evaluation seed: of members, initialisation and order of batches
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import audit, lab, report
from leak_atlas.recipe import Data, Model, RandomHalves, Schedule, Setup

claims = report.claims(
    report.Claim(
        "reached",
        "At the nearest setting, the test accuracy is within 0.02 of the paper's",
        fails="At the nearest setting, the test accuracy differs by at least 0.02 from the paper's "
        "on CIFAR-10",
        quantity=f"test accuracy at the nearest setting of the grid minus the paper's {printed}",
        within=0.02,
        ours="our calibration against Tab. 3",
        control="the whole grid is shown; the leak is not measured",
        headline=True,
    ),
    regime={"member accuracy at the nearest setting": 0.95},
)
claims

# %%
grid = {}
for pool in pools:
    design = RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference)
    for lr in lrs:
        schedule = Schedule(epochs, batch, "adam", lr=lr)
        subject = Data(data, pixels), design, Model(model, width), schedule
        grid[pool, lr] = Setup(*subject, runs, seed, precision).trained().signals()
results = lab.realize(grid)

# %%
accuracies = {}
for point, networks in grid.items():
    accuracies[point] = [float(results[one]["accuracy_test"]) for one in networks]
minus_paper = {}  # test accuracy at each setting minus the paper's
for point, values in accuracies.items():
    minus_paper[point] = audit.mean_ci([value - printed for value in values])


def distance(point):
    """How far the mean accuracy at a setting is from the paper's."""
    return abs(minus_paper[point].value)


nearest = min(grid, key=distance)
side = "above" if minus_paper[nearest].value > 0 else "below"

# %% [markdown]
# ## Accuracy at each setting
# The hollow marker is the paper's accuracy on CIFAR-10, whatever our data are.

# %%
rows = []
for point, values in accuracies.items():
    pool, lr = point
    row = {"setting": f"{pool // 2:,} members, learning rate {lr:g}"}
    rows.append(row | {"value": audit.mean_ci(values), "paper": printed})
report.against_paper(
    rows,
    "setting",
    source="paper, CIFAR-10",
    xlabel="test accuracy",
    title=f"Nearest of {len(grid)} settings: test accuracy is {distance(nearest):.3f} {side} the "
    f"paper's ({data})",
)

# %% [markdown]
# ## Verdicts

# %%
members = [float(results[one]["accuracy_member"]) for one in grid[nearest]]
report.judge(
    claims,
    reached=minus_paper[nearest],
    checks={"reached": {"the data are the paper's, CIFAR-10": data == "cifar10"}},
    regime={"member accuracy at the nearest setting": audit.mean_ci(members)},
)

# %% [markdown]
# **Limits.** Where the nearest setting is at the edge of the grid, another may be nearer. In
# `desk-cpu`, networks have at most 1,000 members; those of the page `tab03_cifar10` have 20,000, at
# 32 x 32 pixels, and reach .745 without a defence. Other settings may give the same accuracy. The
# same networks choose the nearest setting and are judged at it.

# %%
report.provenance(results, seed=seed, pilots=pilots)
