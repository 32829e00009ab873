"""What the tests of displays share: matplotlib without a screen, data, a look at what was drawn."""

import numpy as np
import pytest

from fairconstrained import make_biased_classification

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra 'plot')")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


def three_groups():
    """Return features, labels and the groups "a", "b" and "c"."""
    X, y, groups = make_biased_classification(400, 4, gap=0.3, n_groups=3, random_state=0)
    return X, y, np.array(["a", "b", "c"])[groups]


def draw(display):
    """Draw a display and check that no text is cut off by the figure's edge."""
    figure = display.figure_
    figure.draw_without_rendering()
    box = figure.bbox
    for ax in figure.axes:
        texts = [ax.xaxis.label, ax.yaxis.label, *ax.texts]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = axis.get_view_interval()
            ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
            texts += [label for place, label in ticks if low <= place <= high]
        texts += ax.get_legend().get_texts() if ax.get_legend() else []
        for text in texts:
            extent = text.get_window_extent()
            if text.get_text() and text.get_visible():
                assert box.x0 - 1 <= extent.x0 and extent.x1 <= box.x1 + 1, text.get_text()
                assert box.y0 - 1 <= extent.y0 and extent.y1 <= box.y1 + 1, text.get_text()
    return display
