"""Linear classifiers of two classes under fairness constraints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fairconstrained.data.attributes import in_order, names_in_fit
from fairconstrained.data.group_interactions import codes_of
from fairconstrained.data.sensitive_columns import SensitiveColumns
from fairconstrained.domains import Domain
from fairconstrained.estimators.base import FairClassifier
from fairconstrained.estimators.linear.export import exported
from fairconstrained.estimators.linear.parametrization import ClassifierParametrization
from fairconstrained.functions.losses import Loss
from fairconstrained.models.linear import LinearModel, finite_scores
from fairconstrained.objectives import Objective
from fairconstrained.utils.fitted import coefficients
from fairconstrained.utils.typing import Array, MatrixLike


@dataclass(eq=False, repr=False, kw_only=True)
class FairLinearClassifier(SparseCoefMixin, FairClassifier):
    """Linear classifiers of two classes under fairness constraints."""

    parametrization = ClassifierParametrization

    loss: str | Loss | Objective = "logistic"
    domain: Domain | None = None
    fit_intercept: bool = True
    group_interactions: bool = False
    warm_start: bool = False

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: whether there may be several classes, sparse features."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.several_classes
        tags.input_tags.sparse = True
        return tags

    def decision_function(self, X: MatrixLike) -> Array:
        """Return the scores: the linear function of the features.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows, with the columns seen in `fit`.

        Returns
        -------
        scores : ndarray of shape (n_samples,), or (n_samples, n_classes) for several classes
            The score of the second class, or of each of several classes; the log odds with
            ``loss="logistic"``. `predict` compares the score of the favourable label with
            `score_threshold_`.

        Raises
        ------
        ValueError
            With `group_interactions`, if a row belongs to a group that was not in the training
            rows.
        """
        check_is_fitted(self)
        columns = SensitiveColumns.of(self)
        features = columns.features(self, X, reset=False)
        coef = coefficients(self)[:, columns.kept(self)]
        model = LinearModel(features, n_outputs=len(coef))
        scores = finite_scores(model, np.append(coef.ravel(), self.intercept_))
        if not self.group_interactions:
            return scores
        groups = columns.groups(self, columns.table(self, X))
        groups = in_order(groups, names_in_fit(self), "sensitive_columns")
        codes = codes_of(self.groups_, groups, model.n_rows, self.groups_missing)
        return scores.reshape(model.n_rows, -1)[np.arange(model.n_rows), codes]

    def to_sklearn(self, *, sensitive: str = "zero") -> ClassifierMixin:
        """Return scikit-learn's linear classifier for the same loss, with the same coefficients.

        It has the same scores and predictions, and for the logistic loss the same probabilities.
        Exporters to ONNX and PMML support it. It has no information on constraints and groups. For
        pipelines see :func:`fairconstrained.deployment.to_sklearn`.

        Parameters
        ----------
        sensitive : {"zero", "leave_out"}, default="zero"
            What happens to sensitive columns that the model does not use. With "zero" they have a
            coefficient of zero, and must be numeric. With "leave_out" X must not contain them.

        Returns
        -------
        model : LogisticRegression, LinearSVC or SGDClassifier
            Fitted: LogisticRegression for the logistic loss, LinearSVC for the hinge and the
            squared hinge, SGDClassifier(loss="squared_error") for the quadratic loss.

        Raises
        ------
        ValueError
            If scikit-learn has no linear classifier with this loss, or this model was fitted with
            ``group_interactions=True``: no model of scikit-learn is equivalent.
        NotFittedError
            If it is not fitted.

        Examples
        --------
        >>> import numpy as np
        >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
        >>> X, y, groups = make_biased_classification(random_state=0)
        >>> fair = FairLogisticClassifier().fit(X, y, sensitive_features=groups)
        >>> plain = fair.to_sklearn()
        >>> np.allclose(plain.predict_proba(X), fair.predict_proba(X))
        True
        """
        return exported(self, sensitive)
