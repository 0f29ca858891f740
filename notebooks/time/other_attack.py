# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does Shokri's attack network find more leakage with harder data and in a wide residual network?
#
# **Question.** A *reading note*, others' summary of the paper Dynamics (Chen et al. 2025), says
# that three findings also hold with Shokri's attack network: harder data and deeper networks leak
# more, and networks trained with sharpness-aware minimization (SAM) leak less. The note gives no
# numbers: the claims are ours.
#
# **Setup.** *Shokri's net* learns from the outputs of other networks what members look like. Its
# AUC after training decides the answers. LiRA, RMIA and a threshold on the confidence attack the
# same networks. The networks form two halves. In LiRA and RMIA, networks of one half attack each
# other. Shokri's net and the threshold learn from networks of the other half. The parameter `deep`
# names a wide residual network, `shallow` a shallow CNN. n counts networks; in the claims on rank
# correlations, n counts pairs.
#
# **Controls.**
#
# 1. *LiRA on the same networks* shows whether a stronger attack finds the differences (figure).
# 2. *Ranks of samples* (decide the last two verdicts): attacks that rank networks alike can expose
#    different samples. We compare ranks in the two halves of the networks.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # the harder data set (reading note: CIFAR-10 and others)
pixels = 8  # side of the images, pixels, after area resize; 0: as they are
simple = "digits"  # the simpler data set (reading note: MNIST)
simple_pixels = 0  # side of the simpler data's images, pixels; 0: as they are
shallow = "cnn2"  # a shallow CNN (reading note: a shallow CNN)
deep = "wrn16"  # a deep network (reading note: WRN28-2)
rho = 0.1  # distance by which SAM moves the weights before the gradient (not stated)
model = "cnn4"  # architecture (reading note: CNNs of several depths, WRN28-2)
width = 8  # channels of stage 1 (not stated)
pool = 600  # samples, half of them members of a network (not stated)
test = 200  # test samples (not stated)
epochs = 40  # epochs of training (not stated; the article calls epoch 150 early)
batch = 50  # samples a step (not stated)
optimizer = "sgd"  # optimizer (article: SGD)
lr = 0.05  # learning rate at the start (not stated)
decay = "cosine"  # decay of the learning rate over the epochs (not stated)
networks = 32  # networks of each kind, except `few` (authors' group's code: 20 shadow models)
few = 20  # networks of the shallow architecture, and of the deep one (ours)
teachers = 10  # networks of the other half from which an attack learns (authors' group's code: 10)
rate = 0.1  # FPR of each network that sets the threshold for samples (ours)
retraining = 1.4  # factor on the variance of Shokri's AUC, because only two nets are trained (ours)
learnt = 0.6  # test accuracy that is required of the networks (ours)
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

from leak_atlas import audit, lab, report
from leak_atlas.localization import over_time, prediction
from leak_atlas.recipe import (
    RMIA,
    Data,
    LiRA,
    Model,
    Network,
    Schedule,
    Threshold,
    TrajectoryStudy,
)

shokri = "Shokri's net"
shokri_auc = f"AUC of {shokri} (a trained attack network) after training"
ours = "after a reading note on the paper"
rank_agreement = "rank correlation of samples' TPR minus FPR between halves of the networks"
claims = report.claims(
    report.Claim(
        "harder_data",
        "Shokri's net has a higher AUC for networks trained on the harder than on the simpler data",
        fails="Shokri's net has a lower AUC for networks trained on the harder than on the simpler "
        "data",
        quantity=f"{shokri_auc}: {data} minus {simple}",
        above=0.0,
        margin=0.02,
        ours=ours,
        control="LiRA on the same networks",
        headline=True,
    ),
    report.Claim(
        "deeper",
        "Shokri's net has a higher AUC for the wide residual network than for the shallow CNN",
        fails="Shokri's net has a lower AUC for the wide residual network than for the shallow CNN",
        quantity=f"{shokri_auc}: {deep} minus {shallow}",
        above=0.0,
        margin=0.02,
        ours=ours,
        control="LiRA on the same networks",
        headline=True,
    ),
    report.Claim(
        "sam",
        "Shokri's net has a lower AUC for networks trained with SAM than with SGD",
        quantity=f"{shokri_auc}: SGD minus SAM",
        above=0.0,
        margin=0.02,
        ours=ours,
        control="LiRA on the same networks",
    ),
    report.Claim(
        "same_samples",
        "RMIA and LiRA agree on which samples are vulnerable (rank correlation above .4)",
        quantity=f"{rank_agreement}: RMIA with LiRA",
        above=0.4,
        margin=0.15,
        ours="our control",
        control="halves that share no shadow model",
    ),
    report.Claim(
        "other_samples",
        "On the risk of samples, Shokri's net agrees with itself more than with LiRA, by over .2 "
        "in rank correlation",
        quantity=f"{rank_agreement}: {shokri} with itself minus {shokri} with LiRA",
        above=0.2,
        margin=0.2,
        ours="our control",
        control="agreement with itself; on each half, the net learns from the other half",
    ),
    regime={f"member accuracy ({data}, {simple}, {deep})": 0.95, "test accuracy": learnt},
)
claims

# %%
setup = TrajectoryStudy(
    Data(data, pixels or None),
    Model(model, width),
    Schedule(epochs, batch, optimizer, lr, decay=decay),
    pool=pool,
    test=test,
    networks=networks,
    checkpoints=[epochs],
    seed=seed,
    precision=precision,
)
studies = {
    data: setup,
    simple: replace(setup, data=Data(simple, simple_pixels or None)),
    "SAM": replace(setup, schedule=replace(setup.schedule, sharpness=rho)),
    shallow: replace(setup, model=Model(shallow, width), attacked=few),
    deep: replace(setup, model=Model(deep, width), attacked=few),
}
among_themselves = {"LiRA": LiRA(), "RMIA": RMIA()}
taught = {"confidence": Threshold(), shokri: Network()}

# %%
halves = {}
for name, study in studies.items():
    for attack, attacker in among_themselves.items():
        halves[name, attack] = study.attacked_halves(attacker)
    for attack, attacker in taught.items():
        halves[name, attack] = study.attacked_halves(attacker, teachers)
comparison = lab.compare({name: study.trained for name, study in studies.items()}, {}, also=halves)
results = comparison.results
attackers = [*among_themselves, *taught]

# %% [markdown]
# ## Differences in leakage, by attack
# A difference above 0 agrees with the reading note.

# %%
aucs, attack_scores = {}, {}
for key, two_halves in halves.items():
    attack_scores[key] = [over_time.read(results, half) for half in two_halves]
    joined = over_time.joined_by_rank(*attack_scores[key])
    aucs[key] = audit.auc(joined.scores[-1], joined.member)

# Factors on the variance of a mean AUC: the AUCs of one attack are not independent.
variance_factors = {attack: retraining if attack == shokri else 1.0 for attack in attackers}
for (_, attack), two_halves in halves.items():
    if attack in among_themselves:
        design_effect = two_halves[0][epochs].design_effect
        variance_factors[attack] = max(variance_factors[attack], design_effect)

# %%
orders = {
    f"{data} minus {simple}": (data, simple),
    f"{deep} minus {shallow}": (deep, shallow),
    "SGD minus SAM": (data, "SAM"),
}
differences = {}
points = []
for order, (more, less) in orders.items():
    for attack in attackers:
        pair = aucs[more, attack], aucs[less, attack]
        factor = variance_factors[attack]
        change = audit.paired_difference(*pair, design_effect=factor)
        differences[order, attack] = change
        points.append({"order": order, "attack": attack, "value": change})
significant = sum(differences[order, shokri].low > 0 for order in orders)
report.against_paper(
    points,
    "order",
    hue="attack",
    title=f"{shokri} finds the expected difference in leakage in {significant} of {len(orders)} comparisons",
    xlabel="difference of AUC after training",
)

# %%
rows = []
for name in studies:
    row = {"networks": name, "member accuracy": comparison.estimate(name, "", "member accuracy")}
    row["test accuracy"] = comparison.accuracy(name)
    for attack in attackers:
        mean_auc = audit.mean_ci(aucs[name, attack], design_effect=variance_factors[attack])
        row[f"AUC of {attack}"] = mean_auc
    rows.append(row)
recipes = f"All but {simple} use {data}; the networks differ from the first row as named"
report.table(
    rows,
    caption=f"{recipes}. {networks} networks of each, {few} of {shallow} and {deep}. In LiRA and RMIA, "
    "shadow models are those of one half",
    fold="All networks: accuracy and AUC",
)

# %% [markdown]
# ## Agreement of attacks on which samples are vulnerable
# A sample's *vulnerability*, or risk, is an attack's TPR minus FPR: how often it calls the sample a
# member of networks that trained on the sample, minus the same for other networks. The table
# correlates vulnerabilities in the two halves of the networks: an attack's with its own, and with
# LiRA's.

# %%
first_half, second_half = {}, {}
for attack in attackers:
    first_scores, second_scores = attack_scores[data, attack]
    first_half[attack] = over_time.joined_by_rank(first_scores)
    second_half[attack] = over_time.joined_by_rank(second_scores)
agree = prediction.agreement(first_half, second_half, "LiRA", rule=rate)
rows = []
for attack in attackers:
    row = {"attack": attack, "agrees with itself": agree[attack].with_itself}
    rows.append(row | {"agrees with LiRA": agree[attack].with_reference})
report.table(rows, caption=f"Rank correlation of one half with the other; {data}, {model}")

# %% [markdown]
# ## Verdicts

# %%
member_accuracies = []
for name in (data, simple, deep):
    member_accuracies.append(comparison.estimate(name, "", "member accuracy").value)
checks = {}
for name in studies:
    mean_auc = audit.mean_ci(aucs[name, shokri], design_effect=variance_factors[shokri])
    checks[f"{shokri} beats guessing: {name}"] = mean_auc.low > 0.5
report.judge(
    claims,
    harder_data=differences[f"{data} minus {simple}", shokri],
    deeper=differences[f"{deep} minus {shallow}", shokri],
    sam=differences["SGD minus SAM", shokri],
    same_samples=agree["RMIA"].with_reference,
    other_samples=agree[shokri].difference,
    checks={claim.name: checks for claim in claims},
    regime={
        f"member accuracy ({data}, {simple}, {deep})": min(member_accuracies),
        "test accuracy": min(comparison.accuracy(name).value for name in studies),
    },
)

# %% [markdown]
# **Limits.** Only two of Shokri's nets are trained for each kind of network. So the variance of
# their AUC is multiplied by a factor that we chose (`retraining`). Without it, the first answer in
# `quick` would be yes, by a small margin. The deep network differs from the shallow one in more
# than depth: on the page `architecture`, in `quick`, depth alone changes vulnerability by less than
# .08. Networks are not compared at an equal generalization gap. The shallow CNN and the networks
# with SAM are exempt from the required member accuracy. Shokri's net on one half learns from
# networks of the other half, so its two rankings of samples share networks.

# %%
report.provenance(results, seed=seed, pilots=pilots)
