"""Configuration of the documentation: ``python -m sphinx -W -b html docs docs/_build``."""

import json
from pathlib import Path

import fairconstrained

project = "fairconstrained"
author = "the fairconstrained developers"
copyright = author
version = release = fairconstrained.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build", "paper"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
nb_execution_mode = "off"  # notebooks are committed with their outputs, which the tests check
# Links of the included pages to files of the repository; labels of scikit-learn's own pages.
suppress_warnings = ["myst.xref_missing", "ref.ref"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
numpydoc_show_class_members = False  # the template lists them
numpydoc_class_members_toctree = False
numpydoc_show_inherited_class_members = False
numpydoc_xref_param_type = False
autodoc_typehints = "none"  # the lists of parameters have the types
toc_object_entries_show_parents = "hide"

html_sidebars = {  # pages without pages below them
    page: []
    for page in (
        "index",
        "install",
        "tour",
        "glossary",
        "contributing",
        "changelog",
        "from_0_2_to_0_3",
    )
}
html_theme = "pydata_sphinx_theme"
html_title = "fairconstrained"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 5,
}


def write_gallery(app):
    """Copy the notebooks into the documentation, and write the page that lists them."""
    here = Path(app.srcdir)
    gallery = here / "gallery"
    gallery.mkdir(exist_ok=True)
    entries = []
    for path in sorted((here.parent / "notebooks").glob("*.ipynb")):
        text = path.read_text().replace("](../docs/", "](../")
        copy = gallery / path.name
        if not copy.exists() or copy.read_text() != text:
            copy.write_text(text)
        first, *rest = "".join(json.loads(text)["cells"][0]["source"]).split("\n")
        about = " ".join(" ".join(rest).split()) or "&nbsp;"
        entries.append(f"| [{first.lstrip('# ')}]({path.name}) | {about} |")
    names = "\n".join(path.name for path in sorted(gallery.glob("*.ipynb")))
    table = "\n".join(["| notebook | what it shows |", "| --- | --- |", *entries])
    page = f"# Gallery\n\n{table}\n\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"
    if not (index := gallery / "index.md").exists() or index.read_text() != page:
        index.write_text(page)


def setup(app):
    """Write the gallery before the pages are read."""
    app.connect("builder-inited", write_gallery)
