"""The five papers: the question of each, its citation, and the report that represents it."""

from __future__ import annotations

from dataclasses import dataclass

ARXIV = "https://arxiv.org/abs/"


@dataclass(frozen=True)
class Paper:
    """A paper that notebooks reproduce."""

    question: str
    short: str
    authors: str
    title: str
    venue: str  # ends in the number on arXiv, if the paper is there
    thesis: str  # what the paper says, in one sentence
    shown: str  # the notebook whose first figure and first claims represent the paper

    @property
    def cited(self) -> str:
        return f"{self.authors}, {self.title}. {self.venue}"

    @property
    def link(self) -> str:
        """The paper's page on arXiv; "" if the paper is not there."""
        _, on_arxiv, number = self.venue.partition("arXiv:")
        return f"{ARXIV}{number}" if on_arxiv else ""


PAPERS = {
    "layers": Paper(
        question="In which layers?",
        short="PPTP",
        authors="Fang & Kim",
        title="Decoupling Generalizability and Membership Privacy Risks in Neural Networks",
        venue="2026, arXiv:2602.02296",
        thesis="membership shows in the features of the last stages alone; so retrain these with a "
        "defence.",
        shown="layers/fig01_stage_and_block_disparity",
    ),
    "weights": Paper(
        question="In which weights?",
        short="CWRF",
        authors="Fang & Kim",
        title="Learnability and Privacy Vulnerability are Entangled in a Few Critical Weights",
        venue="ICLR 2026, arXiv:2603.13186",
        thesis="what leaks and what is learnt depend on the same few weights; rewind and freeze "
        "them, and retrain the others with a defence.",
        shown="weights/fig07_text",
    ),
    "pruning": Paper(
        question="What does pruning do?",
        short="SAMIA and PPB",
        authors="Yuan & Zhang",
        title="Membership Inference Attacks and Defenses in Neural Network Pruning",
        venue="USENIX Security 2022, arXiv:2202.03335",
        thesis="pruning raises the leakage; the attack SAMIA finds most of it, and the defence PPB "
        "hides it at little cost.",
        shown="pruning/fig07_fig08_risk",
    ),
    "samples": Paper(
        question="In which samples?",
        short="WeMem",
        authors="Shang et al.",
        title="Defending Against Membership Inference Attacks for Iteratively Pruned Deep Neural "
        "Networks",
        venue="NDSS 2025",
        thesis="iterative pruning leaks more than one-shot pruning, because samples are reused; so "
        "visit or weigh memorized samples less.",
        shown="samples/oneshot_or_iterative",
    ),
    "time": Paper(
        question="When in training?",
        short="Dynamics",
        authors="Chen et al.",
        title="Evaluating the Dynamics of Membership Privacy in Deep Learning",
        venue="2025, arXiv:2507.23291",
        thesis="harder data, deeper networks and SGD put membership into a network faster, and a "
        "sample's difficulty tells early whether it will be exposed.",
        shown="time/complexity_and_speed",
    ),
}
# The heading of each folder of notebooks in the index.
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
