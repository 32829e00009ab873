"""The names of LightGBM's parameters, and which of them `lightgbm_params` must not contain."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType

from fairconstrained.utils.extras import import_extra

BOOSTING = "boosting"

# What every fit sets, so that another value would be ignored.
FIXED = {"deterministic": True, "feature_pre_filter": False, "verbosity": -1}

OF_THE_ESTIMATOR = {
    *("learning_rate", "eta", "shrinkage_rate", "max_depth"),
    *("num_leaves", "num_leaf", "max_leaves", "max_leaf", "max_leaf_nodes"),
    *("min_data_in_leaf", "min_data_per_leaf", "min_data", "min_samples_leaf"),
    *("min_child_samples", "min_child_weight", "min_hessian"),
    *("min_sum_hessian_in_leaf", "min_sum_hessian_per_leaf", "min_sum_hessian"),
    *("min_gain_to_split", "min_split_gain", "bagging_freq", "subsample_freq"),
    *("bagging_fraction", "sub_row", "bagging", "subsample"),
    *("feature_fraction", "sub_feature", "colsample_bytree"),
    *("lambda_l1", "reg_alpha", "l1_regularization"),
    *("lambda_l2", "reg_lambda", "lambda", "l2_regularization", "max_bin", "max_bins"),
}  # with LightGBM's aliases

_OBJECTIVE = "the loss and the constraints are the objective"
_LEAVES = "leaf values are fitted by the library"
_WEIGHTS = "use class_weight, or sample_weight for rankers"
_BALANCED = "rows are drawn by label for LightGBM's own objectives only; use subsample"
_GBDT = "only boosting='gbdt' is supported"
_FILES = "it has no effect: it is for data files and LightGBM's command line"
_PREDICT = "it has no effect: it is a parameter of LightGBM's predict"

REFUSED = {
    "objective": _OBJECTIVE,
    "num_class": "only two classes are supported",
    "metric": "use early_stopping",
    "linear_tree": "leaves must have constant values",
    "monotone_constraints": f"{_LEAVES}, which would not keep the order",
    "early_stopping_round": "use early_stopping and n_iter_no_change",
    "num_iterations": "use n_estimators",
    "num_threads": "use n_jobs",
    "seed": "use random_state",
    "categorical_feature": "use categorical_features",
    "boost_from_average": "the first score is set by the library",
    "refit_decay_rate": _LEAVES,
    "linear_lambda": "leaves must have constant values",
    **dict.fromkeys(
        ("monotone_constraints_method", "monotone_penalty"),
        "it is for monotone_constraints, which are not supported",
    ),
    **dict.fromkeys(("scale_pos_weight", "is_unbalance"), _WEIGHTS),
    **dict.fromkeys(("pos_bagging_fraction", "neg_bagging_fraction"), _BALANCED),
    **dict.fromkeys(
        (
            *("sigmoid", "alpha", "reg_sqrt", "fair_c", "poisson_max_delta_step", "label_gain"),
            *("tweedie_variance_power", "lambdarank_truncation_level", "lambdarank_norm"),
            *("lambdarank_position_bias_regularization", "objective_seed"),
        ),
        _OBJECTIVE,
    ),
    **dict.fromkeys(
        (
            *("eval_at", "first_metric_only", "auc_mu_weights", "multi_error_top_k"),
            *("metric_freq", "is_provide_training_metric", "early_stopping_min_delta"),
        ),
        "use early_stopping",
    ),
    **dict.fromkeys(
        ("drop_rate", "max_drop", "skip_drop", "xgboost_dart_mode", "uniform_drop", "drop_seed"),
        _GBDT,
    ),
    **dict.fromkeys(
        (
            *("task", "config", "data", "valid", "header", "label_column", "weight_column"),
            *("group_column", "ignore_column", "input_model", "output_model", "snapshot_freq"),
            *("save_binary", "two_round", "precise_float_parser", "parser_config_file"),
            *("output_result", "convert_model", "convert_model_language"),
        ),
        _FILES,
    ),
    **dict.fromkeys(
        (
            *("predict_raw_score", "predict_leaf_index", "predict_contrib", "pred_early_stop"),
            *("predict_disable_shape_check", "pred_early_stop_freq", "pred_early_stop_margin"),
            *("start_iteration_predict", "num_iteration_predict"),
        ),
        _PREDICT,
    ),
}  # by LightGBM's main name

_ALIASES: Mapping[str, str] = {
    alias: name
    for name, aliases in {
        "objective": ("objective_type", "app", "application", "loss"),
        BOOSTING: ("boosting_type", "boost"),
        "num_class": ("num_classes",),
        "metric": ("metrics", "metric_types"),
        "linear_tree": ("linear_trees",),
        "monotone_constraints": ("mc", "monotone_constraint", "monotonic_cst"),
        "is_unbalance": ("unbalance", "unbalanced_sets"),
        "early_stopping_round": ("early_stopping_rounds", "early_stopping", "n_iter_no_change"),
        "num_iterations": (
            *("num_iteration", "n_iter", "num_tree", "num_trees", "num_round", "num_rounds"),
            *("nrounds", "num_boost_round", "n_estimators", "max_iter"),
        ),
        "num_threads": ("num_thread", "nthread", "nthreads", "n_jobs"),
        "seed": ("random_seed", "random_state"),
        "categorical_feature": (
            *("cat_feature", "categorical_column", "cat_column", "categorical_features"),
        ),
        "verbosity": ("verbose",),
    }.items()
    for alias in aliases
}


def import_lightgbm() -> ModuleType:
    """Return the module lightgbm.

    Raises
    ------
    ImportError
        If it is not installed; the message says how to install it.
    """
    return import_extra("lightgbm", "boosting", "An estimator with boosted trees")


@cache
def known_names() -> Mapping[str, str]:
    """Return the main name for every name and alias that the installed LightGBM knows.

    LightGBM's Python package has a function that lists them; it is not public. In a version without
    that function the result is empty, and unknown names are accepted.
    """
    import_lightgbm()
    try:
        from lightgbm.basic import _ConfigAliases

        found = _ConfigAliases._get_all_param_aliases()
        return {alias: name for name, aliases in found.items() for alias in aliases}
    except (ImportError, AttributeError):
        return {}


def main_name(name: str) -> str:
    """Return LightGBM's main name of a parameter, or the name itself if LightGBM has none.

    Examples
    --------
    >>> from fairconstrained.estimators.boosting._lightgbm_names import main_name
    >>> main_name("unbalance")
    'is_unbalance'
    """
    return _ALIASES.get(name) or known_names().get(name, name)
