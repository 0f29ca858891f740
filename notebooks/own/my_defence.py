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
# # Does my defence hide members, and does my attack find them?
#
# A defence and an attack of your own, in two cells. Change them and run: only what they change is trained again, because
# the text of these cells is part of the keys of their results (comments and layout are not). The defence here leaves a
# sample alone once its loss is below a floor; it stands beside ordinary training and RelaxLoss.
#
# **It would be wrong if** the attacks found no less with it. **Beside the point if** stopping ordinary training early did
# as much (control: its epochs, at equal leak), or if the attack found something where membership is dealt out at random
# (control: its null).
#
# A class in a cell is computed by this process alone. To use all cores, or another machine, move both cells into a file
# beside this notebook, `mine.py`, and write `from mine import Floor, Margin` in their place.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (python -m lib.data)
pixels = 16  # side of the images, pixels, after area resize
model = "resnet10"  # architecture
width = 8  # channels of stage 1
pool = 600  # samples from which each model draws half
test = 600  # samples of the test part that are looked at
floors = [0.5, 1.0]  # of my defence: losses that are low enough, nats, weakest first
alpha = 1.0  # RelaxLoss target loss, nats
epochs = 12  # epochs of all trainings
stops = [2, 3, 4, 6, 8]  # epochs of ordinary training that are looked at too: early stopping
batch = 64  # samples a step
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9
lr = 0.005  # learning rate, cosine to 0
shadows = 10  # models in complement pairs; each is attacked by the others, less its pair
draws = 10  # of the null: how often membership is dealt out
margin = 0.03  # smallest difference of AUCs that is worth having
learnt = 0.6  # least test accuracy of ordinary networks that have learnt
seed = 0  # seed of design, initialisation and order

# %%
import torch
from torch.nn import functional

from lib.recipe import Objective
from lib.recipe.core import Amount
from lib.training.objectives import loss


class Floor(Objective):
    """Cross-entropy of a sample counts only above a floor."""

    floor: Amount = 0.5  # nats


@loss.register
def floored(objective: Floor, logits: torch.Tensor, labels: torch.Tensor, epoch: torch.Tensor) -> torch.Tensor:
    each = functional.cross_entropy(logits, labels, reduction="none")
    return (each - objective.floor).clamp(min=0).mean()


# %%
import numpy as np

from lib.attacks.case import Case, Scored, infer
from lib.recipe import Attacker


class Margin(Attacker):
    """The label's logit less the largest other one, beside the same of shadows that did not train on the sample."""


@infer.register
def beside_shadows(attacker: Margin, case: Case) -> Scored:
    def lead(arrays: dict[str, np.ndarray], which: np.ndarray) -> np.ndarray:
        logits, own = arrays["logits"][which].astype(float), arrays["labels"][which, None]
        label = np.take_along_axis(logits, own, axis=1)[:, 0]
        np.put_along_axis(logits, own, -np.inf, axis=1)
        return label - logits.max(axis=1)

    mine, others = case.read(lead, case.pool)
    return Scored(mine - np.ma.masked_array(others, case.member).mean(axis=0).filled(0.0))


# %%
from lib import audit, lab, recipe, report

stopped = {"paper": "ours", "control": "at equal AUC of RMIA, along the epochs of ordinary training"}
claims = report.claims(
    report.Claim("hides", "My defence hides members", "AUC of RMIA, largest floor minus ordinary", below=0.0, margin=margin, paper="ours", control="ordinary"),
    report.Claim("stopping", "It beats early stopping", "test accuracy minus ordinary epochs, mean over floors", above=0.0, margin=margin, **stopped),
    report.Claim("finds", "My attack finds more than a threshold", "AUC, mine minus confidence", above=0.0, margin=margin, paper="ours", control="same networks"),
    report.Claim("null", "My attack finds nothing in nothing", f"AUC minus 1/2, over {draws} draws", within=margin, paper="ours", control="membership dealt out"),
    regime={"test accuracy": learnt},
)  # fmt: skip
claims

# %%
schedule = recipe.Schedule(epochs, batch, optimizer, lr, nesterov=True)
design = recipe.RandomHalves(pool, test=test, seed=seed)
setup = recipe.Setup(recipe.Data(data, pixels), design, recipe.Model(model, width), schedule, shadows, seed)
ordinary, end = setup.trained(), ("ordinary", epochs)
ways = {("ordinary", stop): ordinary.at(stop) for stop in stops} | {end: ordinary}
ways |= {("mine", floor): setup.trained(Floor(floor)) for floor in floors}
ways["RelaxLoss", alpha] = setup.trained(recipe.RelaxLoss(alpha))
attackers = {"RMIA": recipe.RMIA(), "my attack": Margin(), "confidence": recipe.Threshold(sign="shadows")}
attacks = {(way, name): each.attack(attacker) for way, each in ways.items() for name, attacker in attackers.items()}
signals = {way: each.signals() for way, each in ways.items()}
nulls = [ordinary.attack(Margin(), dealt=draw) for draw in range(draws)]
results = lab.realize(attacks, signals, nulls, recipe.self_audit(ordinary))

# %% [markdown]
# ## Accuracy against leak
# Mean over the targets with 95 % intervals. Down and right is better.

# %%
found = audit.Comparison.of(results, signals, attacks)
line, inner = [way for way in ways if way[0] == "ordinary"], [("mine", floor) for floor in floors]
off = found.beside_line(inner, line, "RMIA")
word = "gains accuracy" if off.low > 0 else "loses accuracy" if off.high < 0 else "is undecided"
drawn = {"ordinary": line, "mine": [end, *inner], "RelaxLoss": [end, ("RelaxLoss", alpha)]}
rows = [row for name in ("RMIA", "my attack") for row in found.plane(drawn, name, panel=name)]
report.tradeoff(rows, xlabel="test accuracy", ylabel="AUC", null=None, title=f"Beside early stopping, at equal leak, my defence {word}")

# %%
report.table(
    [{"way": ", ".join(map(str, way)), "test accuracy": found.accuracy(way)} | {name: found.leak(way, name)["auc"] for name in attackers} for way in ways],
    caption=f"AUC of each attack, mean over {shadows} targets; numbers are epochs, floors or alphas (nats)",
)  # fmt: skip

# %% [markdown]
# ## Verdicts


# %%
def area(attack):
    return audit.auc(results[attack]["scores"], results[attack]["member"])


report.judge(
    claims,
    hides=found.more_leaky(inner[-1], end, "RMIA"),
    stopping=off,
    finds=audit.paired_difference(area(attacks[end, "my attack"]), area(attacks[end, "confidence"]), design_effect=2.0),
    null=audit.over([area(each).mean() - 0.5 for each in nulls]),
    checks={"stopping": {"my defence leaks less than ordinary training": found.more_leaky(end, inner[-1], "RMIA")}},
    regime={"test accuracy": found.accuracy(end)},
)  # fmt: skip

# %% [markdown]
# **Caveat.** One small network, few samples, one draw: an example to start from. An attacker who knows the defence may
# do better than these.

# %%
report.provenance(results)
