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
# **Ten minutes with Leak Atlas.** Ten small networks learn to classify clothes, each from its own
# half of the same samples. An attacker asks of each sample: was it in this network's half? Run the
# cells in order (Shift+Enter). In section 7 you change a defence yourself.
#
# **You have a trained network?** Audit it now:
#
# | You have | Do |
# | --- | --- |
# | its logits | `leak-atlas audit mine.npz`, or [own/audit_my_logits](own/audit_my_logits.py) |
# | its weights and data | change two cells of [own/audit_my_model](own/audit_my_model.py) |
# | a defence | change one cell of [own/my_defence](own/my_defence.py) |

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data lists them)
pixels = 16  # side of the images, pixels, after area resize
model = "resnet10"  # architecture
width = 8  # channels of stage 1
pool = 600  # samples from which each network draws half
dev = 300  # samples outside the pool, unused here; as in weights/tab03, to share its networks
reference = 300  # samples outside the pool, unused here
test = 600  # test samples
alpha = 0.3  # target loss of the defence RelaxLoss, nats
epochs = 12  # epochs of each training
stops = [3, 4, 6, 8]  # earlier epochs, for early stopping
batch = 64  # samples a step
lr = 0.005  # learning rate of Adam, cosine to 0
shadows = 10  # networks, in pairs: a pair splits the pool, other pairs are its shadow models
seed = 101  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %% [markdown]
# ## 1 Describe the experiment
# A *recipe* describes one step, for example the training of ten networks. Nothing runs yet.

# %%
from leak_atlas import audit, lab, recipe, report

setup = recipe.Setup(
    recipe.Data(data, pixels),
    recipe.RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference),
    recipe.Model(model, width),
    recipe.Schedule(epochs, batch, "adam", lr=lr),
    shadows,
    seed,
    precision,
)
ordinary = setup.trained()

# %% [markdown]
# ## 2 Add a defence
# The defence RelaxLoss keeps the mean loss of members near `alpha`, so that members differ less
# from non-members.

# %%
defended = setup.trained(recipe.RelaxLoss(alpha))
variants = {"ordinary": ordinary, "RelaxLoss": defended}

# %% [markdown]
# ## 3 Choose attackers
# The attack *loss* reads only the loss of the attacked network. LiRA and RMIA also compare this
# network with the other networks, its *shadow models*.

# %%
# `sign="shadows"`: the shadow models show whether members have the smaller loss.
attackers = {
    "loss": recipe.Threshold("loss", sign="shadows"),
    "LiRA": recipe.LiRA(),
    "RMIA": recipe.RMIA(),
}

# %% [markdown]
# ## 4 Run
# `lab.compare` trains the networks, stores them, attacks and compares them. Run this cell twice:
# the second run reads the stored results.

# %%
comparison = lab.compare(variants, attackers, checkpoints={"ordinary": stops})

# %% [markdown]
# ## 5 Which attack identifies members best?
# The *true positive rate* (TPR) is the share of members that an attack identifies. The *false
# positive rate* (FPR) is the share of non-members that it mistakes for members. The area under the
# curve of TPR against FPR (AUC) is .5 for guessing and 1 for a perfect attack.

# %%
curves = {}
for name in attackers:
    attack = comparison.attacks["ordinary", name]
    curves[name] = audit.roc_band(attack["scores"], attack["member"])
areas = {name: comparison.estimate("ordinary", name).value for name in attackers}
best_attack = max(areas, key=areas.get)
report.roc(curves, title=f"{best_attack} has the largest AUC, {areas[best_attack]:.2f}")

# %% [markdown]
# ## 6 Is the defence more accurate than early stopping?
# A network that stops training earlier leaks less, too. So we compare the defence with ordinary
# training at the same AUC (*matched AUC*) of the best attack of section 5. The line joins the
# epochs of ordinary training. A point right of the line is more accurate. This can be chance,
# because point and line have intervals; the title says whether the difference is significant. The
# numbers below the figure repeat the comparison with RMIA: the answer can depend on the attack.
#
# At earlier epochs the learning rate is still high. A whole training of fewer epochs would be a
# stronger control.

# %%
gain = comparison.early_stopping("RelaxLoss", best_attack)
epochs_of_ordinary = [*comparison.checkpoints["ordinary"], "ordinary"]
lines = {"ordinary, by epoch": epochs_of_ordinary, "RelaxLoss": ["RelaxLoss"]}
report.tradeoff(
    comparison.plane(lines, best_attack),
    facet=None,
    reference=None,
    xlabel="test accuracy",
    ylabel=f"AUC of {best_attack}",
    title=f"At matched AUC, RelaxLoss {report.compared_accuracy(gain)}",
)

# %%
gains = {attack: comparison.early_stopping("RelaxLoss", attack) for attack in ("LiRA", "RMIA")}
print(
    "Test accuracy minus that of early stopping, at matched AUC of each attack:",
    report.listed(gains),
)

# %%
rows = comparison.table([best_attack], ("auc", "tpr@0.01"))
expected = (
    "Expected: a threshold that is set at 1 % FPR on few non-members has this FPR on new samples"
)
report.table(rows, caption=f"Mean over {shadows} networks. {expected}")

# %% [markdown]
# ## 7 Your turn
# Change `my_alpha`, then run the next three cells. Only networks with the new value are trained, in
# seconds. Does a larger value hide members better? How much accuracy does it cost?

# %%
my_alpha = 0.8  # nats: try 0.1 to 2
mine = f"my RelaxLoss, alpha {my_alpha:g}"
variants[mine] = setup.trained(recipe.RelaxLoss(my_alpha))

# %%
changed = lab.compare(variants, attackers, checkpoints={"ordinary": stops})
my_gain = changed.early_stopping(mine, best_attack)
report.tradeoff(
    changed.plane(lines | {mine: [mine]}, best_attack),
    facet=None,
    reference=None,
    xlabel="test accuracy",
    ylabel=f"AUC of {best_attack}",
    title=f"With alpha {my_alpha:g}, RelaxLoss {report.compared_accuracy(my_gain)}",
)

# %%
my_gains = {attack: changed.early_stopping(mine, attack) for attack in gains}
print(
    "Test accuracy minus that of early stopping, at matched AUC of each attack:",
    report.listed(my_gains),
)

# %% [markdown]
# ## Where next
#
# | You ask | Open |
# | --- | --- |
# | In which layers does a network leak? | [explore/layers](explore/layers.py), [layers/fig01](layers/fig01_stage_and_block_disparity.py) |
# | In which weights? | [explore/weights](explore/weights.py), [weights/fig04b](weights/fig04b_tab02_rewind_or_remove.py) |
# | Does pruning raise the leakage? | [explore/pruning](explore/pruning.py), [pruning/fig07](pruning/fig07_fig08_risk.py) |
# | Which samples are at risk? | [explore/samples](explore/samples.py), [samples/risk](samples/risk_by_memorization.py) |
# | When in training does the leakage begin? | [explore/time](explore/time.py), [time/plane](time/plane.py) |
# | Does my network leak? Does my defence hide members? | the table at the top of this page |
#
# `make reproduce` executes all notebooks, `make site` turns them into web pages. The
# [glossary](../docs/glossary.md) explains their words.

# %%
report.provenance(changed.results)
