"""Configuration of the documentation: ``python -m sphinx -W -b html docs docs/_build``."""

import fairconstrained

project = "fairconstrained"
author = "the fairconstrained developers"
copyright = author
version = release = fairconstrained.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build"]
# Links of the included pages to files of the repository; labels of scikit-learn's own pages.
suppress_warnings = ["myst.xref_missing", "ref.ref"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
numpydoc_show_class_members = True
numpydoc_class_members_toctree = False
numpydoc_show_inherited_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "fairconstrained"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}
