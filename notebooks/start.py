# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Can you tell who was in the training set?
#
# **Ten minutes with Leak Atlas.** Ten small networks learn to tell clothes apart, each from its own half of the same
# samples. An attacker asks of each sample: was it in this network's half? Run the cells in order (Shift+Enter). What was
# computed once is looked up, so that a second run takes seconds.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data lists them)
pixels = 16  # side of the images, pixels, after area resize
model = "resnet10"  # architecture
width = 8  # channels of stage 1
pool = 600  # samples from which each network draws half
dev = 300  # samples outside the pool, unused here: the networks are those of weights/tab03
reference = 300  # samples outside the pool, unused here
test = 600  # samples of the test part
alpha = 0.3  # of the defence: loss below which training no longer pushes, nats
epochs = 12  # epochs of each training
stops = [3, 4, 6, 8]  # earlier epochs that are looked at too
batch = 64  # samples a step
lr = 0.005  # learning rate of Adam, cosine to 0
shadows = 10  # networks in complement pairs; each is attacked with the help of the others, less its pair
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %% [markdown]
# ## 1 An experiment is said, then computed
# A *recipe* says what is done: data, who trains on what, which network, how long. Nothing runs yet.

# %%
from leak_atlas import audit, lab, recipe, report

schedule = recipe.Schedule(epochs, batch, "adam", lr=lr)
design = recipe.RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference)
setup = recipe.Setup(recipe.Data(data, pixels), design, recipe.Model(model, width), schedule, shadows, seed, precision)
ordinary, defended = setup.trained(), setup.trained(recipe.RelaxLoss(alpha))

# %% [markdown]
# `lab.compare` is the one place where something runs. It trains what is missing, keeps it, attacks all
# networks and compares them.

# %%
attackers = {
    "its own loss": recipe.Threshold("loss", sign="shadows"),
    "LiRA": recipe.LiRA(),
    "RMIA": recipe.RMIA(),
}
variants = {"ordinary": ordinary, "RelaxLoss": defended}
comparison = lab.compare(variants, attackers, checkpoints={"ordinary": stops})

# %% [markdown]
# ## 2 The leak
# Three attackers, from simple to strong: the first looks at one network's loss alone; LiRA and RMIA
# compare it with networks that they trained in the same way. *Right*: even with few false alarms the
# strong ones find members.

# %%
curves = {}
for name in attackers:
    attack = comparison.attacks["ordinary", name]
    curves[name] = audit.roc_band(attack["scores"], attack["member"])
best = max(attackers, key=lambda name: comparison.estimate("ordinary", name).value)
report.roc(curves, title=f"{best} identifies members best")

# %% [markdown]
# ## 3 A defence, and what to compare it with
# RelaxLoss keeps the loss of members up. It leaks less, and is less accurate; but so is a network that
# stopped earlier. A defence is worth something where it lies to the right of that line: more accurate
# at *matched AUC*.

# %%
gain = comparison.early_stopping("RelaxLoss", "RMIA")
word = "gains" if gain.low > 0 else "loses" if gain.high < 0 else "neither gains nor loses"
report.tradeoff(
    comparison.frontier("RMIA"),
    null=None,
    xlabel="test accuracy",
    ylabel="AUC of RMIA",
    title=f"At matched AUC RelaxLoss {word} accuracy",
)

# %%
rows = comparison.table(numbers=("auc", "tpr_at_1%"))
report.table(rows, caption=f"Mean over {shadows} networks. Guessing: AUC .5")

# %% [markdown]
# ## 4 Where next
#
# | You ask | Open |
# | --- | --- |
# | In which layers is the leak seen? | [explore/layers](explore/layers.py), [layers/fig01](layers/fig01_stage_and_block_disparity.py) |
# | In which weights? Does it help to rewind them? | [explore/weights](explore/weights.py), [weights/fig04b](weights/fig04b_tab02_rewind_or_remove.py) |
# | What does pruning do? | [explore/pruning](explore/pruning.py), [pruning/fig07](pruning/fig07_fig08_risk.py) |
# | Which samples are remembered? | [explore/samples](explore/samples.py), [samples/risk](samples/risk_by_memorization.py) |
# | When in training does it come? | [explore/time](explore/time.py), [time/plane](time/plane.py) |
# | How leaky are the logits that I have? | [own/audit_my_logits](own/audit_my_logits.py) |
# | Does my own defence hide members? | [own/my_defence](own/my_defence.py) |
#
# Change a parameter above and run again: only what it changes is trained. `make reproduce` executes everything, and
# `make site` makes pages of it.

# %%
report.provenance(comparison.results)
