# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does my defence hide members?
#
# **To test your defence**, copy this notebook
# (`cp notebooks/own/my_defence.py notebooks/own/my_defence_copy.py`), change the copy and run it:
#
# 1. *My defence*: write your loss in place of `floored`.
# 2. *My attack*, if you have one: write your scores in place of `compared_with_shadows`.
# 3. *My data*, if you have some: add it as the last section says, and write its name as `data`.
#
# Only what you change is trained again. Without changes, the page runs an example.
#
# **Setup.** The example defence ignores a sample while its loss is below a *floor*. The example
# attack compares the margin of a sample's logits with that of shadow models. The figure also shows
# RelaxLoss, a published defence. n counts targets (attacked networks).
#
# **Controls.**
#
# 1. *Ordinary training* on the same members: the defence hides them if it lowers the AUC of RMIA.
# 2. *Early stopping* (decides whether the defence is worth its cost): fewer epochs of ordinary
#    training, *at matched AUC*, that is with the same AUC of RMIA.
# 3. *A threshold on the confidence* (decides whether the attack is better).
# 4. *Permuted membership labels*: there the attack must be at chance.

# %% tags=["parameters"]
data = ""  # your data set (leak-atlas data add); "": fashion-mnist-small at 16 x 16 pixels
pixels = None  # side to which images are resized, pixels; None: as they are
model = ""  # architecture; "": resnet10 for images, fc for bits and numbers, transformer for text
width = 0  # channels of stage 1 (fc: units of layer 1); 0: 8 for images, 256 for fc, 16 for text
pool = 600  # samples of which each model trains on half; at most the train part
test = 600  # samples of the test part that measure accuracy; at most all of them
floors = [0.2, 0.4]  # of my defence, weakest first; 1 is the loss of a guess, ln(classes)
alpha = 0.4  # target loss of RelaxLoss; 1 is the loss of a guess
epochs = 12  # epochs of all trainings
stops = [2, 3, 4, 6, 8]  # epochs at which ordinary training is also stopped: early stopping
batch = 64  # samples a step; at most a quarter of what a model trains on
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9
lr = 0.005  # learning rate, cosine to 0
shadows = 10  # models in complement pairs; each is attacked by all but its complement
draws = 10  # permutations of the membership labels
smallest_effect = 0.03  # smallest difference of AUC or accuracy that matters
learnt = 0.6  # test accuracy from which ordinary networks count as trained
seed = 0  # seed of design, initialisation and order

# %% [markdown]
# ## My defence
# Each number of the class is a setting and needs a type, such as `Amount` or `float`. The function
# returns the loss of a batch. If it uses `torch.…`, add `import torch`.

# %%
from leak_atlas.recipe import Objective
from leak_atlas.recipe.core import Amount
from leak_atlas.training.objectives import loss
from torch import Tensor
from torch.nn import functional


class Floor(Objective):
    """My defence: cross-entropy of a sample counts only above a floor."""

    floor: Amount = 0.5  # nats


@loss.register
def floored(objective: Floor, logits: Tensor, labels: Tensor, epoch: Tensor) -> Tensor:
    each = functional.cross_entropy(logits, labels, reduction="none")
    return (each - objective.floor).clamp(min=0).mean()


# %% [markdown]
# ## My attack
# The function returns a score for each sample: larger means more likely a member.

# %%
import numpy as np
from leak_atlas.attacks.case import Case, Scored, infer
from leak_atlas.recipe import Attacker


class Margin(Attacker):
    """My attack: the target's margin minus the mean margin of shadow models without the sample."""

    max_design_effect = (
        2.0  # variance of the mean AUC, divided by that over independent targets, at most
    )


@infer.register
def compared_with_shadows(attacker: Margin, case: Case) -> Scored:
    target, shadow_models = case.signals_on(margins, case.pool)
    without_sample = np.ma.masked_array(shadow_models, case.shadow_membership)
    return Scored(target - without_sample.mean(axis=0).filled(0.0))


def margins(arrays: dict[str, np.ndarray], samples: np.ndarray) -> np.ndarray:
    """The label's logit minus the largest other logit, for each sample `(n,)`."""
    logits, labels = arrays["logits"][samples].astype(float), arrays["labels"][samples, None]
    of_label = np.take_along_axis(logits, labels, axis=1)[:, 0]
    np.put_along_axis(logits, labels, -np.inf, axis=1)
    return of_label - logits.max(axis=1)


# %% [markdown]
# ## Comparison

# %%
from leak_atlas import audit, lab, recipe, report
from leak_atlas.own.sizes import fitted_sizes
from leak_atlas.recipe import registry

claims = report.claims(
    report.Claim(
        "hides",
        "My defence lowers the AUC of RMIA",
        fails="My defence raises the AUC of RMIA",
        quantity="AUC of RMIA: my defence with the largest floor minus ordinary training",
        below=0.0,
        margin=smallest_effect,
        ours=True,
        control="the same members; paired over targets",
        headline=True,
    ),
    report.early_stopping_claim(
        "stopping", "networks with my defence", "RMIA", smallest_effect, headline=True
    ),
    report.Claim(
        "finds",
        "My attack has a higher AUC than a threshold on the confidence",
        quantity="AUC on ordinary training: my attack minus a threshold on the confidence",
        above=0.0,
        margin=smallest_effect,
        ours=True,
        control="the same networks",
    ),
    report.Claim(
        "chance",
        f"On permuted membership labels, the AUC of my attack is within {smallest_effect:g} of "
        "chance",
        quantity=f"AUC of my attack minus 1/2, mean over {draws} permutations",
        within=smallest_effect,
        ours=True,
        control="permuted membership labels",
    ),
    regime={"test accuracy": learnt},
)
claims

# %%
dataset, side = (data, pixels) if data else ("fashion-mnist-small", pixels or 16)
facts = registry.find(dataset)
sizes = fitted_sizes(dataset, side, pool, test, population=0)
small_networks = {"images": ("resnet10", 8), "text": ("transformer", 16)}
usual_model, usual_width = small_networks.get(facts.kind, ("fc", 256))
network = recipe.Model(model or usual_model, width or usual_width)
guess = float(np.log(len(facts.classes)))  # loss of a network that guesses, nats
samples = min(batch, max(2, sizes.pool // 8))  # a step
schedule = recipe.Schedule(epochs, samples, optimizer, lr, nesterov=True)
design = recipe.RandomHalves(sizes.pool, test=sizes.test, seed=seed)
images_or_rows = recipe.Data(dataset, sizes.pixels)
setup = recipe.Setup(images_or_rows, design, network, schedule, shadows, seed)
what = f"{network.name} of width {network.width}, pool of {sizes.pool:,}, {samples} samples a step"
print(f"{what}.", *sizes.notes)

# %%
ordinary, end = setup.trained(), "ordinary training"
mine = {f"my defence, floor {floor:g}": setup.trained(Floor(floor * guess)) for floor in floors}
strongest = f"my defence, floor {max(floors):g}"
relaxed = {f"RelaxLoss, alpha {alpha:g}": setup.trained(recipe.RelaxLoss(alpha * guess))}
attackers = {"RMIA": recipe.RMIA(), "my attack": Margin()}
attackers["confidence"] = recipe.Threshold(sign="shadows")
permuted = [ordinary.attack(Margin(), permuted=draw) for draw in range(draws)]
variants = {end: ordinary} | mine | relaxed
also = [permuted, recipe.self_audit(ordinary)]
comparison = lab.compare(variants, attackers, checkpoints={end: stops}, also=also)

# %% [markdown]
# ## Verdicts

# %%
null = []
for one in permuted:
    attack = comparison.results[one]
    null.append(audit.auc(attack["scores"], attack["member"]))
lowered = comparison.auc_difference(end, strongest, "RMIA")
answer = report.judge(
    claims,
    hides=comparison.auc_difference(strongest, end, "RMIA"),
    stopping=comparison.early_stopping([*mine], "RMIA"),
    finds=comparison.mean_contrast([(end, "my attack")], [(end, "confidence")], "auc"),
    chance=audit.mean_ci([aucs.mean() - 0.5 for aucs in null]),
    checks={"stopping": {"my defence lowers the AUC of RMIA": lowered}},
    regime={"test accuracy": comparison.accuracy(end)},
)
answer

# %% [markdown]
# ## Accuracy and leakage
# Down and right is better. Each point is a mean over the targets with its 95 % interval. All lines
# meet at ordinary training after all epochs.

# %%
gain = comparison.early_stopping([*mine], "RMIA")
lines = {end: [*comparison.checkpoints[end], end]}
lines |= {"my defence": [end, *mine], "RelaxLoss": [end, *relaxed]}
points = comparison.plane(lines, "RMIA") + comparison.plane(lines, "my attack")
finding = f"At matched AUC, my defence {report.compared_accuracy(gain)}"
report.tradeoff(points, xlabel="test accuracy", ylabel="AUC", reference=None, title=finding)

# %%
report.table(
    comparison.table(),
    caption=f"Mean over {shadows} targets. Floor, alpha: 1 is the loss of a guess",
)

# %% [markdown]
# **Limits.** The networks are small, the samples few, and membership is drawn once. Shadow models
# are trained with the defence. An attack designed against it may still identify more members.

# %%
report.provenance(comparison.results)

# %% [markdown]
# ## How to add your own data
#
# `leak-atlas data add mine PATH` adds a data set. PATH is one of these:
#
# - `table.csv`: numbers or bits, a sample a line, with the classes in a column `label`;
# - `arrays.npz`: `x` with uint8 images (N, H, H) or (N, H, H, 3), or rows of numbers, and `y`;
# - `pictures`: a folder with a folder of pictures for each class; `--size 32` resizes and crops.
#
# Then write `data = "mine"`, or run `leak-atlas reproduce own/my_defence_copy -p data=mine`.
