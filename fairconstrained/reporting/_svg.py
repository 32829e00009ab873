"""Pictures of reports as SVG text, with titles that hold their data.

Rows of dots and histograms are as wide as their cell: horizontal places are percentages, so that
marks and text keep their size. Planes with two axes have a fixed size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from fairconstrained.utils.typing import Array

_PADDING = 4.0  # percent of the width left and right of the axis
_LINE_HEIGHT = 20  # pixels of a model's line in a row
_MARKS = (
    '<circle r="5"/>',
    '<rect x="-4.5" y="-4.5" width="9" height="9"/>',
    '<path d="M0-6.5L6.5 0L0 6.5L-6.5 0Z"/>',
    '<path d="M0-6L6 5H-6Z"/>',
)
N_COLOURS = 6


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


@dataclass(frozen=True)
class Dot:
    """A value with its interval, of one model.

    Parameters
    ----------
    value, low, high : float
        The value and its interval; nan where unknown.
    model : int
        The position of the model, which determines colour and shape.
    few : bool, default=False
        Whether it is computed from few rows: the line is dashed.
    bound : float, default=nan
        A bound on the value, marked by a vertical line.
    """

    value: float
    low: float
    high: float
    model: int
    few: bool = False
    bound: float = float("nan")


def number(value: float) -> str:
    """Return a number of a tick."""
    return f"{value:.6g}"


def mark(model: int, n_models: int) -> str:
    """Return the shape of a model; the first of several models is hollow."""
    hollow = n_models > 1 and model == 0
    shape = _MARKS[0 if model == 0 else (model - 1) % len(_MARKS)]
    colour = 1 if n_models == 1 else model % N_COLOURS
    return f'<g class="m{colour}{" hollow" * hollow}">{shape}</g>'


def key(model: int, n_models: int) -> str:
    """Return a picture of the shape of a model, for legends."""
    inside = mark(model, n_models)
    return (
        '<svg class="key" width="16" height="16" viewBox="-8 -8 16 16" aria-hidden="true">'
        f"{inside}</svg>"
    )


def dots(
    title: str, row: Sequence[Dot], scale: Scale, n_models: int, *, reference: float = np.nan
) -> str:
    """Return a row of dots with intervals, a line for each model, one below the other.

    Parameters
    ----------
    title : str
        The alternative text, with the data.
    row : sequence of Dot
        The values.
    scale : Scale
        The axis.
    n_models : int
        The number of models of the report.
    reference : float, default=nan
        A value marked in all lines, such as that of all rows.
    """
    height = _LINE_HEIGHT * max(len(row), 1)
    parts = [_open(title, height), _grid(scale, height)]
    if np.isfinite(reference):
        parts.append(_vertical(scale.x(reference), 0, height, "reference"))
    for k, dot in enumerate(row):
        y = _LINE_HEIGHT * k + _LINE_HEIGHT // 2
        colour = 1 if n_models == 1 else dot.model % N_COLOURS
        if np.isfinite(dot.low) and np.isfinite(dot.high):
            few = " few" if dot.few else ""
            parts.append(
                f'<line class="interval m{colour}{few}" x1="{scale.x(dot.low)}" '
                f'x2="{scale.x(dot.high)}" y1="{y}" y2="{y}"/>'
            )
        if np.isfinite(dot.bound):
            place = scale.x(dot.bound)
            parts.append(_vertical(place, y - 9, y + 9, "bound"))
        if np.isfinite(dot.value):
            parts.append(
                f'<svg x="{scale.x(dot.value)}" y="{y}" overflow="visible">'
                f"{mark(dot.model, n_models)}</svg>"
            )
    return "".join([*parts, "</svg>"])


def span(title: str, low: float, high: float, scale: Scale) -> str:
    """Return a row with a grey bar from the lowest to the highest value of several groups."""
    left, right = scale.share(low), scale.share(high)
    width = (100.0 - 2.0 * _PADDING) * (right - left)
    return (
        f"{_open(title, _LINE_HEIGHT)}{_grid(scale, _LINE_HEIGHT)}"
        f'<rect class="span" x="{scale.x(low)}" y="6" width="{max(width, 0.4):.2f}%" height="8" '
        'rx="2"/></svg>'
    )


def axis(scale: Scale) -> str:
    """Return the numbers of an axis, for the head of a table."""
    texts = "".join(
        f'<text x="{scale.x(tick)}" y="13" text-anchor="middle">{number(tick)}</text>'
        for tick in scale.ticks
    )
    return f'<svg class="row" width="100%" height="18" aria-hidden="true">{texts}</svg>'


def histogram(title: str, shares: Array, highest: float, threshold: float, model: int) -> str:
    """Return a histogram over the whole width, with a line at the threshold (0 to 1)."""
    n = len(shares)
    steps = ["M0 1"]
    for k, share in enumerate(shares):
        y = 1.0 - share / highest
        steps.append(f"L{k / n:.4f} {y:.3f}L{(k + 1) / n:.4f} {y:.3f}")
    line = (
        "" if not np.isfinite(threshold) else _vertical(f"{100.0 * threshold:.2f}%", 0, 36, "cut")
    )
    return (
        f'{_open(title, 36)}<svg viewBox="0 0 1 1" preserveAspectRatio="none" width="100%" '
        f'height="36"><path class="hist m{model % N_COLOURS}" d="{"".join(steps)}L1 1Z"/></svg>'
        f"{line}</svg>"
    )


def ends(low: float, high: float) -> str:
    """Return the ends of the axis of histograms, and its middle."""
    places = (("0", "start", low), ("50%", "middle", 0.5 * (low + high)), ("100%", "end", high))
    texts = "".join(
        f'<text x="{x}" y="13" text-anchor="{anchor}">{value:.3g}</text>'
        for x, anchor, value in places
    )
    return f'<svg class="row" width="100%" height="18" aria-hidden="true">{texts}</svg>'


def _open(title: str, height: int) -> str:
    return (
        f'<svg class="row" role="img" width="100%" height="{height}"><title>{escape(title)}</title>'
    )


def _grid(scale: Scale, height: int) -> str:
    return "".join(_vertical(scale.x(tick), 0, height, "grid") for tick in scale.ticks)


def _vertical(x: str, top: float, bottom: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x}" x2="{x}" y1="{top:g}" y2="{bottom:g}"/>'


@dataclass(frozen=True)
class Plane:
    """A picture with two axes, of fixed size.

    Parameters
    ----------
    x, y : Scale
        The axes.
    width, height : int
        The size of the picture in pixels.
    x_name, y_name : str, default=""
        The names of the axes; without them the axes have no numbers either.
    """

    x: Scale
    y: Scale
    width: int
    height: int
    x_name: str = ""
    y_name: str = ""

    @property
    def _box(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of the area between the axes."""
        if not self.x_name:
            return 6.0, 6.0, self.width - 6.0, self.height - 6.0
        return 52.0, 24.0, self.width - 14.0, self.height - 40.0

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixel of a point."""
        left, top, right, bottom = self._box
        return left + (right - left) * self.x.share(x), bottom - (bottom - top) * self.y.share(y)

    def frame(self) -> str:
        """Return grid and numbers."""
        left, top, right, bottom = self._box
        parts = [
            f'<rect class="frame" x="{left}" y="{top}" width="{right - left}" '
            f'height="{bottom - top}"/>'
        ]
        for tick in self.x.ticks:
            at = self.place(tick, self.y.low)[0]
            parts.append(_vertical(f"{at:.1f}", top, bottom, "grid"))
            if self.x_name:
                parts.append(_text(at, bottom + 16, number(tick), "middle"))
        for tick in self.y.ticks:
            at = self.place(self.x.low, tick)[1]
            parts.append(
                f'<line class="grid" x1="{left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>'
            )
            if self.x_name:
                parts.append(_text(left - 6, at + 4, number(tick), "end"))
        if self.x_name:
            parts.append(_text((left + right) / 2, self.height - 6, self.x_name, "middle"))
            parts.append(_text(2, 12, self.y_name, "start"))
        return "".join(parts)

    def line(self, xs: Sequence[float], ys: Sequence[float], kind: str) -> str:
        """Return a line through points."""
        points = " ".join(
            "{:.1f},{:.1f}".format(*self.place(x, y)) for x, y in zip(xs, ys, strict=True)
        )
        return f'<polyline class="{kind}" points="{points}"/>'

    def interval(self, x: float, low: float, high: float, kind: str) -> str:
        """Return a vertical interval."""
        (at, top), bottom = self.place(x, high), self.place(x, low)[1]
        return _vertical(f"{at:.1f}", top, bottom, kind)

    def at(self, x: float, y: float, shape: str) -> str:
        """Return a shape at a point."""
        across, down = self.place(x, y)
        return f'<g transform="translate({across:.1f} {down:.1f})">{shape}</g>'

    def wrap(self, title: str, inside: Sequence[str], kind: str) -> str:
        """Return the picture with its alternative text."""
        return (
            f'<svg class="{kind}" role="img" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}"><title>{escape(title)}</title>'
            f"{self.frame()}{''.join(inside)}</svg>"
        )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
