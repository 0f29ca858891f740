"""The five papers: the question that each answers, where it can be read, and the report that shows
its answer best.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """A paper by the folder of its notebooks; `link` is "" where no public page of it is known."""

    question: str
    short: str
    authors: str
    title: str
    venue: str
    link: str
    thesis: str  # what the paper says, in one sentence
    shown: str  # the notebook whose first figure and first claims stand for the folder

    @property
    def cited(self) -> str:
        return f"{self.authors}, {self.title}. {self.venue}"


ARXIV = "https://arxiv.org/abs/"
PAPERS = {
    "layers": Paper(
        "In which layers?",
        "PPTP",
        "Fang & Kim",
        "Decoupling Generalizability and Membership Privacy Risks in Neural Networks",
        "2026, arXiv:2602.02296",
        f"{ARXIV}2602.02296",
        "membership shows in the features of the last stages alone; so retrain these with a "
        "defence.",
        "layers/fig01_stage_and_block_disparity",
    ),
    "weights": Paper(
        "In which weights?",
        "CWRF",
        "Fang & Kim",
        "Learnability and Privacy Vulnerability are Entangled in a Few Critical Weights",
        "ICLR 2026, arXiv:2603.13186",
        f"{ARXIV}2603.13186",
        "what leaks and what is learnt depend on the same few weights; rewind and freeze them, "
        "and retrain the others with a defence.",
        "weights/fig07_text",
    ),
    "pruning": Paper(
        "What does pruning do?",
        "SAMIA and PPB",
        "Yuan & Zhang",
        "Membership Inference Attacks and Defenses in Neural Network Pruning",
        "USENIX Security 2022, arXiv:2202.03335",
        f"{ARXIV}2202.03335",
        "pruning raises the leakage; the attack SAMIA finds most of it, and the defence PPB "
        "hides it at little cost.",
        "pruning/fig07_fig08_risk",
    ),
    "samples": Paper(
        "In which samples?",
        "WeMem",
        "Shang et al.",
        "Defending Against Membership Inference Attacks for Iteratively Pruned Deep Neural "
        "Networks",
        "NDSS 2025",
        "",
        "iterative pruning leaks more than one-shot pruning, because samples are reused; so "
        "visit or weigh memorized samples less.",
        "samples/oneshot_or_iterative",
    ),
    "time": Paper(
        "When in training?",
        "Dynamics",
        "Chen et al.",
        "Evaluating the Dynamics of Membership Privacy in Deep Learning",
        "2025, arXiv:2507.23291",
        f"{ARXIV}2507.23291",
        "harder data, deeper networks and SGD put membership into a network faster, and a "
        "sample's difficulty tells early whether it will be exposed.",
        "time/complexity_and_speed",
    ),
}
GROUPS = {folder: f"{paper.question} {paper.short}" for folder, paper in PAPERS.items()}
GROUPS |= {
    "": "Ten minutes",
    "atlas": "Across the papers",
    "own": "Your own",
    "explore": "Explorers",
}


def paper_of(notebook: str) -> Paper | None:
    """The paper that a notebook, by its folder, reproduces."""
    return PAPERS.get(notebook.rpartition("/")[0])
