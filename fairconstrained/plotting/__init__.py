"""Pictures in scikit-learn's convention: `from_...` draws, the display keeps what was drawn.

All need matplotlib, which comes with ``pip install "fairconstrained[plot]"``, and import it when
something is drawn. Groups differ in colour (Okabe and Ito's, for the colour blind) and in line,
marker or hatch (for print).
"""

from fairconstrained.plotting.convergence import ConvergenceDisplay
from fairconstrained.plotting.densities import ScoreDensityDisplay
from fairconstrained.plotting.group_metrics import GroupMetricsDisplay
from fairconstrained.plotting.group_rates import GroupRateDisplay
from fairconstrained.plotting.path import FairnessPathDisplay

__all__ = [
    "ConvergenceDisplay",
    "FairnessPathDisplay",
    "GroupMetricsDisplay",
    "GroupRateDisplay",
    "ScoreDensityDisplay",
]
