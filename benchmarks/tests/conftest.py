"""The fixtures of the library's tests that tests of benchmarks use too."""

from tests.conftest import close_figures, data_folder, rng  # noqa: F401
