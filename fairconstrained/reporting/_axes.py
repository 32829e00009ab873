"""Axes of the pictures of reports, which the templates draw as SVG."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairconstrained.utils.typing import Array

_PADDING = 4.0  # percent of the width left and right of the axis


@dataclass(frozen=True)
class Scale:
    """A linear axis with round ticks.

    Parameters
    ----------
    low, high : float
        The ends of the axis.
    ticks : tuple of float
        The places with numbers.
    """

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def of(cls, values: Array, *, within: tuple[float, float] | None = None) -> Scale:
        """Return an axis that contains all finite values, with three to six round ticks."""
        known = np.asarray(values, dtype=float)
        known = known[np.isfinite(known)]
        low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
        if high - low < 1e-9:
            low, high = low - 0.05, high + 0.05
        steps = [m * 10.0**e for e in range(-8, 9) for m in (1.0, 2.0, 2.5, 5.0)]
        step = next(one for one in sorted(steps) if (high - low) / one <= 4.0)
        first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
        low, high = first * step, last * step
        if within is not None:
            low, high = max(low, within[0]), min(high, within[1])
        ticks = tuple(
            float(round(k * step, 10))
            for k in range(int(first), int(last) + 1)
            if low - 1e-9 <= k * step <= high + 1e-9
        )
        return cls(float(low), float(high), ticks)

    def share(self, value: float) -> float:
        """Return the place of a value, from 0 to 1."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def x(self, value: float) -> str:
        """Return the horizontal place of a value, in percent of the width."""
        return f"{_PADDING + (100.0 - 2.0 * _PADDING) * self.share(value):.2f}%"

    def width(self, low: float, high: float) -> str:
        """Return the visible width between two values, in percent of the width."""
        width = (100.0 - 2.0 * _PADDING) * (self.share(high) - self.share(low))
        return f"{max(width, 0.4):.2f}%"


@dataclass(frozen=True)
class Plane:
    """A picture with two axes, of fixed size.

    Parameters
    ----------
    x, y : Scale
        The axes.
    width, height : int
        The size of the picture in pixels.
    box : tuple of float
        Left, top, right and bottom of the area between the axes, in pixels.
    """

    x: Scale
    y: Scale
    width: int
    height: int
    box: tuple[float, float, float, float]

    def across(self, x: float) -> float:
        """Return the horizontal pixel of a value."""
        left, _, right, _ = self.box
        return left + (right - left) * self.x.share(x)

    def down(self, y: float) -> float:
        """Return the vertical pixel of a value."""
        _, top, _, bottom = self.box
        return bottom - (bottom - top) * self.y.share(y)
