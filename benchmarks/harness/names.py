"""Names of data sets and notions as pages and figures show them."""

from __future__ import annotations

TITLES = {
    "a9a": "a9a",
    "adult": "Adult",
    "bank": "bank",
    "communities": "communities",
    "compas": "COMPAS",
    "law_school": "law school",
    "demographic_parity": "demographic parity",
    "equal_opportunity": "equal opportunity",
    "equalized_odds": "equalized odds",
}
