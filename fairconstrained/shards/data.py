"""Training data whose rows are in shards."""

from __future__ import annotations

from dataclasses import dataclass, field

from fairconstrained.data.validation import TrainingData
from fairconstrained.models.feature_scale import FeatureScale
from fairconstrained.shards.places import Shards


@dataclass(frozen=True, eq=False)
class ShardedData(TrainingData):
    """Training data with one row per atom; the rows of the atoms are in shards.

    Attributes
    ----------
    shards : Shards
        The rows.
    feature_scale : FeatureScale
        Of all rows.
    largest : float
        The largest weight of a row.
    """

    shards: Shards = field(kw_only=True)
    feature_scale: FeatureScale = field(kw_only=True)
    largest: float = field(kw_only=True)

    @property
    def largest_weight(self) -> float:
        """The largest weight of a row."""
        return self.largest
