# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What is left of PPB when the attacker knows it?
#
# **SAMIA, Fig. 18 and 19.** The adaptive attacker knows the defence: its shadows are trained, pruned and trained on with the same defence at the same strength,
# and SAMIA learns from them. Beside it stands the attacker of Fig. 16 and 17, whose shadows are not defended. **The paper says** that PPB still lowers the
# attack accuracy below Base's, and that for single weights PPB and ADV are the best two defences.
# **It would be wrong if** the adaptive attacker found as many members as without a defence. It would be beside the point if less training did as much: our
# controls are earlier epochs of Base and stronger weight decay, so that a defence pays only where it is more accurate at equal leak. Claims on PPB speak of
# the middle one of its weights (4, the published code's): the strongest may cost so much that the paper's filter would leave it out.
# The rules were settled on draw 0 of `quick` and are judged on this one. Seen there: ADV's strength and learning rate and the width for bits were chosen
# by what networks learn; PPB's check was replaced; the strongest PPB ruined the networks; and areas between curves were too small to tell any difference.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); Fig. 18: CIFAR10
bits = "digits-bits"  # a data set of bits for Fig. 19 (paper: Location, Purchase, Texas)
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture for images (paper: resnet18)
width = 16  # channels of stage 1 (paper: 64)
bits_width = 256  # units of the first hidden layer, for bits (paper: 256)
stem = "conv3-pool"  # first layer (published code: a 3x3 convolution and a max-pool)
pool = 1200  # samples of train and test part joined: half the victims', half the attacker's (paper: all)
bits_pool = 1200  # samples of the joined bits (paper: all)
bits_dev = 60  # of each half of them, set apart (paper: a tenth)
dev = 60  # samples of each half that are set apart; the rest is half member, half non-member (paper: a tenth)
reference = 300  # samples outside the pool that ADV calls non-members (published code: the dev samples)
victims = 10  # networks that split the victims' half (paper: 1)
shadows = 5  # networks that split the attacker's half (paper: 5)
sparsity = 0.6  # share that is removed, single weights (paper: .6)
ppb = [1.0, 4.0, 16.0]  # weights of PPB, weakest first, claims speak of the middle one (paper: 1, 2, 4, 8, 16)
adv = [16.0]  # weights of ADV, weakest first (paper: .5 to 16)
adv_steps = 1  # attack steps before each classifier step (published code: 7, but in a whole epoch)
adv_width = 64  # units of the first layer of ADV's attack net (published codes: 1024)
adv_lr = 0.01  # its learning rate (published codes: .001, for far more steps)
sooner = 2  # epochs of the dense network in the earliest control, which is pruned then and trained on for the first of stops (ours)
stops = [1, 2, 4]  # epochs after pruning at which Base is looked at too, without early stopping (ours)
decays = [0.05, 0.2]  # weight decay, weakest first (ours; paper: 0.0005 in all)
epochs = 12  # most epochs of the dense network (published code: 100)
retrain_epochs = 6  # most epochs after pruning (published code: half of it)
patience = None  # epochs without a better dev accuracy before training stops; None: all are trained (paper: 5)
batch = 32  # samples a step (paper: 128)
lr = 0.002  # learning rate of Adam, constant (paper: 0.001)
attack_epochs = 10  # of the attack networks (published code: 100)
attack_optimizer = "adam"  # theirs (paper: sgd); ten epochs of it reach what 100 of SGD do
attack_lr = 0.001  # theirs (paper: 0.01 for SGD; published code: 0.001)
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

from leak_atlas import audit, lab, report
from leak_atlas.recipe import PPB, SAMIA, AdversarialRegularization, Data, LiRA, Model, Population, PruningStudy, Schedule, Threshold

published = {"paper": "Fig. 18, section 6.3.3", "control": "paired over victims; SAMIA from shadows of the same defence", "margin": 0.02}
ours = {"ours": "our control", "control": "paired over victims; shadows of the same defence", "margin": 0.03}
equal = ours | {"control": "paired over victims, at equal AUC of LiRA; shadows of the same training", "within": 0.02, "margin": None}
named, line = f"PPB {ppb[len(ppb) // 2]:g}", "on the line through"
claims = report.claims(
    report.Claim("ppb_below_base", "PPB is found less than Base", f"attack accuracy of SAMIA, {named} minus Base", below=0.0, **published),
    report.Claim("adv_below_base", "ADV is found less than Base", "attack accuracy of SAMIA, strongest ADV minus Base", below=0.0, **published),
    report.Claim("bits_below_base", "So is PPB on bits", f"attack accuracy of SAMIA on bits, {named} minus Base", below=0.0, **published),
    report.Claim("knowing_helps", "Knowing PPB helps", f"attack accuracy of SAMIA on {named}, adaptive minus not", above=0.0, **published),
    report.Claim("lira_below_base", "LiRA that knows PPB finds less than in Base", f"AUC of LiRA, {named} minus Base", below=0.0, **ours),
    report.Claim("as_early_stopping", "PPB is as good as stopping earlier", f"test accuracy, {named} minus {line} earlier epochs", **equal),
    report.Claim("as_weight_decay", "PPB is as good as weight decay", f"test accuracy, {named} minus {line} weight decay", **equal),
    report.Claim("adv_as_early_stopping", "ADV is as good as stopping earlier", f"test accuracy, strongest ADV minus {line} earlier epochs", **equal),
    regime={"dense member accuracy": 0.95, "dense test accuracy": 0.6, "member accuracy of Base, pruned, least": 0.95},
)
claims

# %% [markdown]
# ## The same chain for victims and shadows
# Each way's shadows are its own; of the defended networks the attacker without knowledge has Base's. LiRA and a threshold attack the controls.

# %%
study = PruningStudy(
    Data(data, pixels, joined=True),
    Model(model, width, stem),
    Schedule(epochs, batch, "adam", lr, decay="constant", patience=patience),
    fine_tuning=retrain_epochs,
    pool=pool,
    dev=dev,
    targets=victims,
    shadows=shadows,
    seed=seed,
    precision=precision,
)
on_bits = replace(study, data=Data(bits, joined=True), model=Model("fc", bits_width), pool=bits_pool, dev=bits_dev)
dense, short = {"images": study.dense, "bits": on_bits.dense}, study.tuning
pruned = {where: each.pruned("L1 unstructured", sparsity) for where, each in dense.items()}
freely = pruned["images"].train(replace(short, patience=None))
ways = {(where, "Base", 0.0): each.train(short) for where, each in pruned.items()}
ways |= {("images", "PPB", weight): pruned["images"].train(short, PPB(weight)) for weight in ppb}
middle = ppb[len(ppb) // 2]
ways["bits", "PPB", middle] = pruned["bits"].train(short, PPB(middle))
for alpha in adv:
    goal = AdversarialRegularization(alpha, adv_steps, width=adv_width, attack_lr=adv_lr)
    ways["images", "ADV", alpha] = pruned["images"].train(short, goal, reference=reference)
defended = [*ways]
start = study.setup.trained(schedule=replace(study.schedule, patience=None)).at(sooner).pruned("L1 unstructured", sparsity)
ways |= {("images", "earlier epochs", stop): freely.at(stop) for stop in stops[::-1]}
ways["images", "earlier epochs", 0.0] = start.train(replace(short, epochs=stops[0], patience=None))
ways |= {("images", "weight decay", decay): pruned["images"].train(replace(short, weight_decay=decay)) for decay in decays}
net = SAMIA(epochs=attack_epochs, lr=attack_lr, optimizer=attack_optimizer)
attacks = {(way, name): ways[way].attack(a, victims) for way in ways for name, a in {"LiRA": LiRA("offline_cdf"), "Conf": Threshold()}.items()}
attacks |= {(way, "adaptive"): ways[way].attack(net, victims) for way in defended}
unaware = {way: Population(ways[way[0], "Base", 0.0].states[victims:]) for way in defended}
attacks |= {(way, "non-adaptive"): ways[way].attack(net, victims, unaware[way]) for way in defended}
signals = {way: each.signals()[:victims] for way, each in (ways | dense).items()}
results = lab.realize(attacks, signals)
found = audit.Comparison.of(results, signals, attacks)

# %% [markdown]
# ## Adaptive or not: Fig. 18 and 19
# The same victims, attacked from undefended shadows, and from shadows with the victim's own defence. Strengths are joined from Base on.

# %%
names = ("earlier epochs", "weight decay", "ADV", "PPB", "Base")
lines = {where: {name: [way for way in ways if way[0] == where and way[1] in (name, "Base")] for name in names} for where in pruned}
base, ppb_way, bits_base, bits_ppb = ("images", "Base", 0.0), ("images", "PPB", middle), ("bits", "Base", 0.0), ("bits", "PPB", middle)
gain = {attack: found.accuracy_difference((ppb_way, attack), (base, attack)) for attack in ("non-adaptive", "adaptive")}
kinds = {"images": ("ADV", "PPB", "Base"), "bits": ("PPB", "Base")}
shown = [(where, a, {name: lines[where][name] for name in each}) for where, each in kinds.items() for a in gain]
plane = [row for where, a, each in shown for row in found.plane(each, a, "accuracy", f"{where}, {a}")]
side = "is surely found less than" if max(each.high for each in gain.values()) < 0 else "is not surely found less than"
news = f"Known or not ({100 * gain['adaptive'].value:+.1f}, {100 * gain['non-adaptive'].value:+.1f} points), {named} {side} Base"
report.tradeoff(plane, xlabel="test accuracy", ylabel="attack accuracy of SAMIA", level="guessing", title=news.replace("-", "−"))

# %% [markdown]
# ## At equal leak
# Other ways to learn less; LiRA and Conf know each. A claim reads, for each victim, the test accuracy on a control's line at the defence's own AUC of LiRA.
# Beyond its ends a line is level, so a check asks that it reaches down to the defence.

# %%
series, adv_way = {name: lines["images"][name] for name in names[:-1]}, ("images", "ADV", adv[-1])
beside = {name: found.at_matched_auc(ppb_way, series[name], "LiRA") for name in ("earlier epochs", "weight decay")}
said = f"is {'not surely ' * (beside['earlier epochs'].low <= 0)}more accurate than" if beside["earlier epochs"].resolved else "cannot be read beside"
rows = found.plane(series, "LiRA") + found.plane(series, "Conf")
report.tradeoff(rows, xlabel="test accuracy", ylabel="AUC", level="guessing", title=f"At equal leak {named} {said} early stopping")

# %%
inside = {way: [float(results[step]["accuracy_member"]) for step in each] for way, each in signals.items()}
members = {way: audit.mean_ci(each) for way, each in inside.items()}
rows = [{"network": f"{where}, dense", "member accuracy": members[where], "test accuracy": found.accuracy(where)} for where in dense]
rows += [
    {"network": f"{way[0]}: {way[1]}{f' {way[2]:g}' if way[2] else ''}", "member accuracy": members[way], "test accuracy": found.accuracy(way)}
    | {f"SAMIA, {a}, accuracy": found.leak(way, a)["accuracy"] for a in gain if way in defended}
    | {f"{a}, AUC": found.leak(way, a)["auc"] for a in ("LiRA", "Conf")}
    for way in ways
]
report.table(rows, caption=f"Mean over {victims} victims, {shadows} shadows; LiRA (offline) and Conf adaptive. Unnumbered earlier epochs: dense too")

# %% [markdown]
# ## Verdicts

# %%
acts = {
    way: {f"{way[1]} moves the accuracy on members ({way[0]})": audit.paired_difference(inside[own], inside[way])}
    | {f"SAMIA finds Base's members ({way[0]})": found.leak(own, "adaptive")["auc"].low > 0.53}
    for way, own in ((ppb_way, base), (adv_way, base), (bits_ppb, bits_base))
}
reach = {  # at most a third of the margin of AUC above the defence
    (way, name): acts[way] | {f"the line of {name} reaches down to the defence": found.auc_difference(series[name][-1], way, "LiRA").value < 0.01}
    for way in (ppb_way, adv_way)
    for name in beside
}
report.judge(
    claims,
    ppb_below_base=gain["adaptive"],
    adv_below_base=found.accuracy_difference((adv_way, "adaptive"), (base, "adaptive")),
    bits_below_base=found.accuracy_difference((bits_ppb, "adaptive"), (bits_base, "adaptive")),
    knowing_helps=found.accuracy_difference((ppb_way, "adaptive"), (ppb_way, "non-adaptive")),
    lira_below_base=found.auc_difference(ppb_way, base, "LiRA"),
    as_early_stopping=beside["earlier epochs"],
    as_weight_decay=beside["weight decay"],
    adv_as_early_stopping=found.at_matched_auc(adv_way, series["earlier epochs"], "LiRA"),
    checks=dict.fromkeys(("ppb_below_base", "knowing_helps", "lira_below_base"), acts[ppb_way])
    | {"adv_below_base": acts[adv_way], "adv_as_early_stopping": reach[adv_way, "earlier epochs"], "bits_below_base": acts[bits_ppb]}
    | {"as_early_stopping": reach[ppb_way, "earlier epochs"], "as_weight_decay": reach[ppb_way, "weight decay"]},
    regime={"dense member accuracy": members["images"], "dense test accuracy": found.accuracy("images")}
    | {"member accuracy of Base, pruned, least": min(members[way].value for way in (base, bits_base))},
)

# %% [markdown]
# **Caveat.** All victims share one half of the samples, and each defence one set of shadows. The adaptive attacker knows the strength too, which a real one
# would have to guess. One pruner is tried here; the paper has four, and finds PPB the best of all for filters.

# %%
report.provenance(results)
