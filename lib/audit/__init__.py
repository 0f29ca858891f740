"""From membership scores to numbers with intervals.

Pure statistics: arrays in, :class:`Estimate` or arrays out. Scores are float64 and **larger means more likely
member**; ``member`` is Boolean. A sample is called a member when ``score >= threshold``. Scores may be tied or
infinite, never NaN: an attack that did not score a sample has to say so before it comes here.

Two kinds of interval exist and are not interchangeable. Over *samples* (`auc_interval`, `balanced_accuracy_interval`,
`tpr_at_fpr`): what other samples from the same population would have given for this one model. Over *targets* (`over`,
`paired_difference`, `audit` of a matrix): what other models, trained the same way, would have given.

scipy is loaded by the functions that need it: rates and choices are made where there may be numpy alone.
"""

from lib.audit.choice import Choice, choose
from lib.audit.comparison import Comparison
from lib.audit.curves import Roc, roc_band
from lib.audit.estimates import Estimate, largest, least
from lib.audit.one_run import one_run_epsilon
from lib.audit.rates import (
    BoolArray,
    FloatArray,
    auc,
    balanced_accuracy,
    is_resolved,
    non_members_to_certify,
    resolution,
    roc,
    tie_mass,
    tpr,
    tpr_label,
)
from lib.audit.samples import (
    TwoSided,
    auc_interval,
    balanced_accuracy_interval,
    clopper_pearson,
    threshold_law,
    tpr_at_fpr,
    two_sided,
)
from lib.audit.targets import CROSSED, HEADLINE_FPRS, audit, bootstrap, over, paired_difference, tpr_over

__all__ = [
    "CROSSED",
    "HEADLINE_FPRS",
    "BoolArray",
    "Choice",
    "Comparison",
    "Estimate",
    "FloatArray",
    "Roc",
    "TwoSided",
    "auc",
    "auc_interval",
    "audit",
    "balanced_accuracy",
    "balanced_accuracy_interval",
    "bootstrap",
    "choose",
    "clopper_pearson",
    "is_resolved",
    "largest",
    "least",
    "non_members_to_certify",
    "one_run_epsilon",
    "over",
    "paired_difference",
    "resolution",
    "roc",
    "roc_band",
    "threshold_law",
    "tie_mass",
    "tpr",
    "tpr_at_fpr",
    "tpr_label",
    "tpr_over",
    "two_sided",
]
