"""From membership scores to numbers with intervals.

Pure statistics: arrays in, :class:`Estimate` or arrays out. Scores are float64 and **larger means
more likely member**; ``member`` is Boolean. A sample is called a member when ``score >=
threshold``. Scores may be tied or infinite, never NaN: an attack that did not score a sample has to
say so before it comes here.

Two kinds of interval exist and are not interchangeable. Over *samples* (`auc_interval`,
`tpr_at_fpr`): what other samples from the same population would have given for this one model. Over
*targets* (`mean_ci`, `paired_difference`, `audit`): what other models, trained the same way, would
have given. How often each holds the truth is simulated by `python -m bench coverage`;
docs/coverage.md has the table.

scipy is loaded by the functions that need it: rates are made where there may be numpy alone.
"""

from leak_atlas.audit.comparison import *
from leak_atlas.audit.correlations import *
from leak_atlas.audit.curves import *
from leak_atlas.audit.estimates import *
from leak_atlas.audit.rates import *
from leak_atlas.audit.samples import *
from leak_atlas.audit.targets import *
