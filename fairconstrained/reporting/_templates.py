"""The templates of reports, which hold pages, sentences and pictures."""

from __future__ import annotations

from typing import Any

import jinja2
import numpy as np

from fairconstrained.metrics.rates import RATES
from fairconstrained.reporting.text_tables import markdown, number
from fairconstrained.utils.rounding import at_most


def percent(value: float, other: float = np.nan) -> str:
    """Return 100 times a value with few decimals, but enough to tell it from another value."""
    for decimals in (1, 2, 3, 4):
        text, against = (f"{100.0 * one:.{decimals}f}" for one in (value, other))
        if text != against or np.isnan(other) or abs(value - other) <= 1e-9:
            break
    if at_most(abs(value - round(value, 2)), 0.0):
        return f"{abs(100.0 * value):.0f}" if at_most(abs(value), 0.0) else f"{100.0 * value:.0f}"
    if not float(text):
        text = f"{100.0 * value:.1g}"
    return text


def level_of(confidence: float) -> str:
    """Return a confidence level as text."""
    return f"{100.0 * confidence:g}%"


_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("fairconstrained.reporting"),
    autoescape=lambda name: name is not None and ".html" in name,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    auto_reload=False,  # templates do not change while a program runs
)
_ENVIRONMENT.filters |= {
    "number": number, "percent": percent, "markdown": markdown,
}  # fmt: skip
_ENVIRONMENT.tests |= {
    "finite": lambda value: value is not None and bool(np.isfinite(value)),
    "zero": lambda value: at_most(abs(value), 0.0),
}
_PLURALS = {name: f"{rate.title}s" for name, rate in RATES.items()}
_SENTENCES = _ENVIRONMENT.get_template(
    "sentences.j2",
    globals={
        "titles": _PLURALS | {"accuracy": "accuracies", "base_rate": "rates of positive labels"}
    },
).module


def render(template: str, **content: Any) -> str:
    """Return a template with its content; what ends in ".html.j2" escapes all text."""
    return _ENVIRONMENT.get_template(template).render(content)


def sentence(name: str, *content: Any) -> str:
    """Return a sentence of the template of sentences with its content."""
    return str(getattr(_SENTENCES, name)(*content)).strip()
