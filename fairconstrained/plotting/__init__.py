"""Plots with scikit-learn's display API: ``from_...`` methods draw and return a display object.

All displays need matplotlib (``pip install "fairconstrained[plot]"``). It is imported when a plot
is drawn. Groups differ in colour (the palette of Okabe and Ito, safe for colour-blind readers) and
in line style, marker, hatch or place (for black-and-white print). Of more than eight groups the
displays show the extremes, the largest and the others together. Names of groups and classes are
drawn as they are. Names that you give to models and axes may contain formulas of matplotlib.

Drawing belongs here; what is drawn is computed in ``metrics``, ``inspection`` and the fits.
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
