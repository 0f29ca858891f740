# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does augmentation move the disparity, or only weaken it?
#
# **PPTP, Fig. 3** (section 3.3). The probe of Fig. 1 (`fig01_stage_and_block_disparity`), once without and once with
# random crops and flips.
#
# **The paper says** that augmentation mitigates the disparity where it occurs, and has no influence on where it occurs:
# in stage 4 with and without (ResNet18, TinyImageNet). The text gives no number.
#
# **It would be wrong if** stage 4 told the halves apart as well with augmentation, or if an earlier stage began to.
# **It would be beside the point** if augmented networks had just not learnt: what they do not know by heart they
# cannot show. So with augmentation networks train until they, too, know their members (.95 or more). Neither fit nor
# steps are equal: the table shows how well M_all and M_h1 know theirs, and part of the fall may be fit. More steps
# alone strengthen the disparity: on draw 0 of `quick`, 24 epochs without augmentation gave stage 4 an AUC of .658
# and, by direction, .720; against 12 epochs of the same pairs that is +.013 [.002, .024] and +.031 [.021, .041].
#
# That augmentation moves the disparity into no earlier stage is no claim here. So few pairs cannot tell less than .04
# from nothing, and on draw 0 of `quick` stage 4 itself keeps but .035 by the paper's distance. We ask whether stage 4
# still leads.
#
# Rules were settled on draw 0, a referee's objections in hand, and are judged on this one (seed 1).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer (paper: not stated; conv3-pool gives its 4x4 map in stage 4 at 64 pixels)
pool = 600  # samples in D_all (paper: 100,000)
epochs = 12  # epochs without augmentation (paper: not stated)
augmented_epochs = 48  # epochs with augmentation, until members are known (paper: not stated)
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0 (paper: not stated)
crop = 1  # padding of the random crop, pixels (paper: not stated)
flip = True  # random horizontal flips (paper: yes)
pairs = 5  # pairs of networks, each with its own seed and its own half (paper: one)
learnt = 0.6  # least test accuracy of a network that has learnt (ours)
seed = 101  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import audit, lab, report
from leak_atlas.localization import disparity
from leak_atlas.recipe import Augment, Data, Model, ProbeStudy, Schedule, Threshold, self_audit

jump, ours = "|AUC − 0.5| of stage 4 minus the largest of stages 1-3", "Fig. 3 (ours)"
fall, same = "|AUC − 0.5| of stage 4, without minus with augmentation", "paired: same seeds, same halves"
claims = report.claims(
    report.Claim("weaker", "Augmentation weakens the disparity of stage 4", f"{fall}, Euclidean",
                 above=0.02, margin=0.06, paper="Fig. 3", control=same),
    report.Claim("weaker_ours", "So it does by direction alone", f"{fall}, direction", above=0.02, margin=0.06, paper=ours, control=same),
    report.Claim("leads_without", "Without augmentation the disparity is in stage 4", f"{jump}, Euclidean",
                 above=0.02, margin=0.05, paper="Fig. 3", control="the same contrast over pairs"),
    report.Claim("leads_with", "With augmentation it is there too", f"{jump}, Euclidean, with augmentation",
                 above=0.02, margin=0.05, paper="Fig. 3", control="the same contrast over pairs"),
    report.Claim("leads_with_ours", "With augmentation it is there too, by direction", f"{jump}, direction, with augmentation",
                 above=0.02, margin=0.05, paper=ours, control="the same contrast over pairs"),
    report.Claim("leaks_less", "An attack on M_h1 finds fewer members too", "AUC of the confidence attack, without minus with augmentation",
                 above=0.02, margin=0.02, ours=True, control="both know most members; " + same),
    regime={f"member accuracy of {k} {name}": 0.95 for k in ("M_all", "M_h1") for name in ("without", "with")} | {"test accuracy": learnt},
)  # fmt: skip
claims

# %% [markdown]
# ## The same pairs, trained twice
# Each pair keeps its seed and its half; only the schedule differs. The attack is the paper's on confidence; M_h1 is its
# target, the pool's other half are non-members, and the other pairs' M_h1 are shadows.


# %%
def trained(length, augment):
    schedule = Schedule(length, batch, optimizer, lr, nesterov=True, augment=augment)
    return ProbeStudy(Data(data, pixels), Model(model, width, stem), schedule, pool, pairs, seed, precision)


studies = {"without": trained(epochs, None), "with": trained(augmented_epochs, Augment(crop, flip))}
distances = {name: study.distances() for name, study in studies.items()}
floors = {name: study.floors() for name, study in studies.items()}
wholes = {name: study.wholes() for name, study in studies.items()}
halves = {name: study.halves() for name, study in studies.items()}
signals = {"M_all": wholes, "M_h1": halves}
attacks = {(name, "Conf"): study.attack(Threshold()) for name, study in studies.items()}

results = lab.realize(distances, floors, wholes, halves, attacks, self_audit(studies["without"].probes))

# %% [markdown]
# ## Stage by stage

# %%
parts = results[distances["with"][0]].parts
early, last = [parts.index(f"stage{i}") for i in (1, 2, 3)], parts.index("stage4")
measures = {"euclidean": "Euclidean (the paper's)", "direction": "direction (1 − cosine)"}
read, profiles, _, onsets = disparity.survey(results, distances, floors, measures, parts, 0.02)
falls = {measure: disparity.setting_difference(read["without", measure], read["with", measure], last) for measure in measures}
told = "weakens" if falls["euclidean"].low > 0 else "does not surely weaken"
leads = {m: disparity.contrast(*read["with", m], last, early) for m in measures}
sure = [m.replace("euclidean", "distance") for m, each in leads.items() if each.low > 0]
still = "it still leads" if len(sure) == 2 else f"it leads for sure by {sure[0]} only" if sure else "it need not lead"
report.profile(
    [row for (name, m), each in profiles.items() for row in report.rows(parts, each, augmentation=name, measure=measures[m])],
    hue="augmentation", facet="measure", begins="stage4", ylabel="AUC, unseen against seen by M_h1",
    title=f"Augmentation {told} the disparity of stage 4; {still}",
)  # fmt: skip

# %%
found = audit.Comparison.of(results, halves, attacks)
members, tests = (
    {(k, name): audit.mean_ci([results[step][f"accuracy_{role}"] for step in of[name]]) for k, of in signals.items() for name in studies}
    for role in ("member", "test")
)
rows = [
    {"augmentation": name, "epochs": length}
    | {f"{role} accuracy of {k}": of[k, name] for k in signals for role, of in (("member", members), ("test", tests))}
    | {f"AUC of stage 4, {measures[m]}": profiles[name, m][last] for m in measures}
    | {f"onset, {measures[m]}": onsets[name, m] for m in measures}
    | {"confidence attack on M_h1, AUC": found.leak(name, "Conf")["auc"]}
    for name, length in (("without", epochs), ("with", augmented_epochs))
]
report.table(
    rows, caption=f"Over {pairs} pairs; onset: the first stage whose interval lies outside 0.5 ± 0.02 and outside that of two seeds on the same data"
)

# %% [markdown]
# ## Verdicts

# %%
report.judge(
    claims,
    weaker=falls["euclidean"],
    weaker_ours=falls["direction"],
    leads_without=disparity.contrast(*read["without", "euclidean"], last, early),
    leads_with=leads["euclidean"],
    leads_with_ours=leads["direction"],
    leaks_less=found.auc_difference("without", "with", "Conf"),
    regime={f"member accuracy of {k} {name}": each for (k, name), each in members.items()} | {"test accuracy": tests["M_all", "without"]},
)

# %% [markdown]
# **Caveat.** In a small pool a strong crop leaves little to learn by heart, and so little to see: the usual pad is an
# eighth of the side, `quick` takes half of that.

# %%
report.provenance(results)
