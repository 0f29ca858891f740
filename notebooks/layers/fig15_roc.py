# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Is a defence as private inside PPTP as from scratch?
#
# **The paper.** Fang & Kim (2026), Fig. 15: "our approach achieves comparable or better privacy
# with higher testing accuracy" (section 5.2.2).
#
# **Setup.** RelaxLoss keeps the loss near a target. Adversarial regularization (Adv-Reg) trains
# against an attack network. Both defences train networks *from scratch* and *inside PPTP*. PPTP
# sets the risky stages of an ordinary network (stage 4 and the last layer) back to their initial
# weights, retrains them with the defence, and freezes earlier stages.
#
# **Controls.**
#
# 1. *From scratch, at the same strength* (decides the answer): yes if the mean AUC of four attacks
#    is less than 0.02 higher inside PPTP. These are thresholds on correctness, confidence,
#    entropy and modified entropy.
# 2. *Early stopping* (decides a second answer): are networks inside PPTP more accurate than
#    ordinary training of fewer epochs at *matched AUC* (the same AUC of RMIA)?
# 3. *RMIA*, a stronger attack than the paper's.
# 4. *No defence inside PPTP*: retraining with cross-entropy. A defence that does not leak less than
#    this has no effect inside PPTP.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (64 by the architecture)
stem = "conv3"  # first layer (paper: not stated)
pool = 600  # samples from which each network draws half (paper: not stated)
dev = 300  # samples outside the pool, unused here; as on the page of Fig. 14, to share networks
reference = 300  # samples outside the pool that Adv-Reg calls non-members (paper: not stated)
test = 600  # test samples (paper: not stated)
risky_from = "stage4"  # first rewound stage (paper, Tab. 6: stage4 on TinyImageNet)
relax_alpha = 0.6  # RelaxLoss: target loss, nats (paper, Tab. 4: 1 to 3, for 200 classes)
adv_alpha = 5.0  # Adv-Reg: weight of the attack's gain (paper, Tab. 4: 1 to 5)
adv_steps = 3  # Adv-Reg: attack steps for each classifier step (paper, Tab. 4: 3)
adv_width = 64  # Adv-Reg: units of the first layer of its attack network (published codes: 1024)
epochs = 12  # epochs from scratch (paper: not stated)
retrain_epochs = 5  # epochs of retraining (paper: "less than half")
stops = [2, 3, 4, 5, 6, 7, 8]  # epochs at which ordinary training may stop (ours)
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0, at the start of each training (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip)
shadows = 10  # networks; shadow models of each: the others but its complement (paper: 3 runs)
learnt = 0.6  # least test accuracy of ordinary networks that have learnt (ours)
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import audit, lab, report
from leak_atlas.recipe import (
    RMIA,
    AdversarialRegularization,
    Augment,
    Data,
    Model,
    RelaxLoss,
    Schedule,
    StageStudy,
    Threshold,
)

quote = "our approach achieves comparable or better privacy with higher testing accuracy"
same = "the same strength; paired over targets"


def accuracy_claim(name, defence):
    return report.Claim(
        name,
        f"At the same strength, {defence} is more accurate inside PPTP than from scratch",
        quantity=f"test accuracy of {defence}: inside PPTP minus from scratch",
        above=0.0,
        margin=0.02,
        paper="Fig. 15",
        quote=quote,
        section="5.2.2",
        control=same,
    )


claims = report.claims(
    report.Claim(
        "comparable_privacy",
        "Training a defence inside PPTP raises the mean AUC of four attacks by less than 0.02",
        fails="Training a defence inside PPTP raises the mean AUC of four attacks by more than "
        "0.02",
        quantity="AUC, mean over four attacks and two defences: inside PPTP minus from scratch",
        below=0.02,
        margin=0.02,
        paper="Fig. 15",
        quote=quote,
        section="5.2.2",
        control=same,
        headline=True,
    ),
    accuracy_claim("relax_accuracy", "RelaxLoss"),
    accuracy_claim("adv_accuracy", "Adv-Reg"),
    report.early_stopping_claim(
        "stopping", "networks with a defence inside PPTP", "RMIA", headline=True
    ),
    regime={"ordinary member accuracy": 0.95, "ordinary test accuracy": learnt},
)
claims

# %% [markdown]
# ## ROC curves of RMIA (Fig. 15)
# Curves are means over targets. Bands are 95 % intervals of each point, not of a curve.

# %%
augmentation = Augment(augment) if augment else None
study = StageStudy(
    Data(data, pixels),
    Model(model, width, stem),
    Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=augmentation),
    retraining=retrain_epochs,
    risky_from=risky_from,
    pool=pool,
    test=test,
    models=shadows,
    dev=dev,
    reference=reference,
    seed=seed,
    precision=precision,
)
defences = {
    "RelaxLoss": RelaxLoss(relax_alpha),
    "Adv-Reg": AdversarialRegularization(adv_alpha, adv_steps, width=adv_width),
}
plain, scratch, inside = "ordinary training", "from scratch", "inside PPTP"
undefended = "no defence, inside PPTP"
variants = {plain: study.ordinary, undefended: study.inside()}
for defence, objective in defences.items():
    variants[defence, scratch] = study.defended(objective)
    variants[defence, inside] = study.inside(objective)

# %%
signals = {
    "correctness": "correctness",
    "confidence": "confidence",
    "entropy": "entropy",
    "modified entropy": "modified_entropy",
}
attackers = {name: Threshold(signal, sign="shadows") for name, signal in signals.items()}
attackers["RMIA"] = RMIA()
comparison = lab.compare(variants, attackers, checkpoints={plain: stops})

# %%
curves = {}
for defence in defences:
    shown = {plain: plain, scratch: (defence, scratch), inside: (defence, inside)}
    for name, variant in shown.items():
        attack = comparison.attacks[variant, "RMIA"]
        curves[defence, name] = audit.roc_band(attack["scores"], attack["member"])
changes = [comparison.contrast((d, inside), (d, scratch), "RMIA") for d in defences]
larger = sum(change.low > 0 for change in changes)
report.roc(
    curves,
    title="RMIA identifies members significantly better inside PPTP than from scratch "
    f"for {larger} of {len(defences)} defences",
)

# %% [markdown]
# ## Change of each attack's AUC inside PPTP

# %%
rows = []
for attack in attackers:
    for defence in defences:
        change = comparison.contrast((defence, inside), (defence, scratch), attack)
        rows.append({"attack": attack, "defence": defence, "value": change})
raised = sum(row["value"].low > 0 for row in rows)
report.against_paper(
    rows,
    "attack",
    hue="defence",
    title=f"Inside PPTP, {raised} of {len(rows)} AUCs are significantly larger than from scratch",
    xlabel="AUC: inside PPTP minus from scratch",
)

# %%
tail = audit.tpr_label(0.1, pool // 2)
rows = []
for variant in variants:
    row = {"network": audit.described(variant)}
    row["member accuracy"] = comparison.estimate(variant, "", "member accuracy")
    row["test accuracy"] = comparison.accuracy(variant)
    row["AUC of confidence"] = comparison.estimate(variant, "confidence")
    row["AUC of RMIA"] = comparison.estimate(variant, "RMIA")
    row[f"{tail} of RMIA"] = comparison.estimate(variant, "RMIA", "tpr@0.1")
    rows.append(row)
strengths = f"RelaxLoss {relax_alpha:g} nats, Adv-Reg weight {adv_alpha:g}"
report.table(rows, caption=f"Mean over {shadows} targets. {strengths}", fold="All networks")

# %% [markdown]
# ## Verdicts

# %%
inside_pairs, scratch_pairs, works, works_inside = [], [], {}, {}
for defence in defences:
    inside_pairs += [((defence, inside), name) for name in signals]
    scratch_pairs += [((defence, scratch), name) for name in signals]
    by_scratch = comparison.contrast(plain, (defence, scratch), "RMIA")
    by_inside = comparison.contrast(undefended, (defence, inside), "RMIA")
    works[f"{defence} from scratch should leak less than ordinary training"] = by_scratch
    works_inside[defence] = {
        f"{defence} inside PPTP should leak less than no defence inside PPTP": by_inside
    }
more_accurate = {d: comparison.accuracy_difference((d, inside), (d, scratch)) for d in defences}

# %%
privacy = comparison.mean_contrast(inside_pairs, scratch_pairs, "auc")
phrases = "significantly above 0", "significantly below 0", "not significantly different from 0"
by_rmia = comparison.mean_contrast(
    [((defence, inside), "RMIA") for defence in defences],
    [((defence, scratch), "RMIA") for defence in defences],
    "auc",
)
above = f"the mean difference is {report.effect(privacy, *phrases)}"
notes = {"comparable_privacy": f"{above}; {report.listed({'by RMIA': by_rmia})}"}
for name, change in zip(("relax_accuracy", "adv_accuracy"), changes, strict=True):
    notes[name] = report.listed({"AUC of RMIA: inside PPTP minus from scratch": change})
beyond_retraining = {
    "test accuracy": comparison.accuracy_difference(("Adv-Reg", inside), undefended),
    "AUC of RMIA": comparison.contrast(("Adv-Reg", inside), undefended, "RMIA"),
}
minus_undefended = "Adv-Reg inside PPTP minus no defence inside PPTP"
notes["adv_accuracy"] += f". {minus_undefended}: {report.listed(beyond_retraining)}"

# %%
report.judge(
    claims,
    notes=notes,
    comparable_privacy=privacy,
    relax_accuracy=more_accurate["RelaxLoss"],
    adv_accuracy=more_accurate["Adv-Reg"],
    stopping=comparison.early_stopping([(d, inside) for d in defences], "RMIA"),
    checks={
        "comparable_privacy": works,
        "relax_accuracy": works_inside["RelaxLoss"],
        "adv_accuracy": works_inside["Adv-Reg"],
        "stopping": works_inside["RelaxLoss"] | works_inside["Adv-Reg"],
    },
    regime={
        "ordinary member accuracy": comparison.estimate(plain, "", "member accuracy"),
        "ordinary test accuracy": comparison.accuracy(plain),
    },
)

# %% [markdown]
# **Limits.** At the same strength, a network inside PPTP can be more accurate and leak more. The
# page `fig14_defences_tinyimagenet` compares several strengths at matched AUC. In `quick`,
# retraining without a defence is .005 more accurate than with Adv-Reg (note of the claim). So the
# higher accuracy of Adv-Reg inside PPTP comes from retraining. A gain over early stopping can be up
# to .03 too high (docs/coverage.md). The paper's fifth attack, a neural network, is not run.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
