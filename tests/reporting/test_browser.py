"""The page of a report in headless Chromium: nothing is cut, nothing overlaps, axe finds nothing.

These tests need Chromium, its driver and the packages of the extra "browser"; else they are
skipped.
"""

import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import fairconstrained as fc

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if CHROMIUM is None or DRIVER is None:
    pytest.skip(
        "reports are opened in Chromium: chromium and chromedriver are not installed",
        allow_module_level=True,
    )

WIDTHS, MEDIA = (400, 800, 1200), ("light", "dark", "print")
OPTIONS = ["--headless", "--no-sandbox", "--no-first-run"]
WITHOUT = ["gpu", "quic", "sync", "background-networking", "component-update"]
OPTIONS += [f"--disable-{feature}" for feature in WITHOUT]
CUT, OVERLAPS = (Path(__file__).with_name(f"{name}.js").read_text() for name in ("cut", "overlaps"))


def reports():
    """Return reports of 2, 3, 12 and 40 groups, with long names, before and after, and a path."""
    X, y, groups = fc.make_biased_classification(3000, 4, gap=0.3, n_groups=3, random_state=0)
    train, test = np.arange(1500), np.arange(1500, 3000)
    names = np.array(["women", "men", "people who did not wish to answer this question"])[groups]
    before = LogisticRegression().fit(X[train], y[train])
    fair = fc.FairLogisticClassifier(kappa=0.1)
    after = fair.fit(X[train], y[train], sensitive_features=names[train])
    path = fc.fairness_path(
        fc.FairLogisticClassifier(), X[train], y[train], sensitive_features=names[train], n_kappas=4
    )
    models = {"before": before, "after": after}
    many = np.array([f"region {k:02d}" for k in np.random.default_rng(0).integers(0, 40, 3000)])
    some = np.array([f"region {k:02d}" for k in np.arange(3000) % 12])
    few = np.where(groups == 0, "women", "men")

    def report(models, groups, **options):
        return fc.fairness_report(models, X[test], y[test], groups[test], **options)

    several = ["demographic_parity", "equalized_odds", "group_auc", "disparate_impact"]
    bands = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.7, 0.7])]
    fair = fc.FairLogisticClassifier(["demographic_parity", "equal_opportunity"], kappa=0.1)
    models_of_bands = {
        "before": LogisticRegression().fit(X[train], bands[train]),
        "after": fair.fit(X[train], bands[train], sensitive_features=names[train]),
    }
    of_classes = fc.fairness_report(models_of_bands, X[test], bands[test], names[test])
    return {
        "three classes": of_classes,
        "one model, two groups": report(after, few),
        "before and after, a path": report(models, names, path=path),
        "a long name": report({"before " * 9: before, "after_" * 9: after}, few),
        "12 groups": report(models, some, constraint=several),
        "40 groups": report(models, many),
    }


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for k, (name, report) in enumerate(reports().items()):
        found[name] = folder / f"{k}.html"
        report.to_html(found[name])
    return found


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in [*OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(option)
    service = webdriver.chrome.service.Service(DRIVER)
    found = webdriver.Chrome(options=options, service=service)
    found.set_script_timeout(120)
    yield found
    found.quit()


def show(browser, page, width=800, medium="light"):
    """Open a page with a width and a medium."""
    scheme = {"name": "prefers-color-scheme", "value": "dark" if medium == "dark" else "light"}
    media = {"media": "print" if medium == "print" else "screen", "features": [scheme]}
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(Path(page).as_uri())


PAGES = ["one model, two groups", "before and after, a path", "12 groups", "three classes"]


@pytest.mark.parametrize("name", [*PAGES, "a long name"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_and_nothing_overlaps(name, width, browser, pages):
    for medium in ("light", "print"):  # light and dark differ in colours only
        show(browser, pages[name], width, medium)
        browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = 1;")
        assert browser.execute_script(CUT) == []
        assert browser.execute_script(OVERLAPS) == []


LOOKS = [(PAGES[1], medium) for medium in MEDIA] + [(PAGES[k], "light") for k in (0, 2, 3)]


@pytest.mark.parametrize(("name", "medium"), LOOKS)
def test_axe_finds_no_violation(name, medium, browser, pages):
    spec = find_spec("axe_core_python")
    if spec is None or spec.origin is None:
        pytest.skip("accessibility is checked by axe: axe-core-python is not installed")
    show(browser, pages[name], 800, medium)
    if name != "12 groups":  # axe takes long for many rows
        browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = 1;")
    browser.execute_script(Path(spec.origin).with_name("axe.min.js").read_text(encoding="utf-8"))
    found = browser.execute_async_script(
        "const [done] = [...arguments].slice(-1);"
        "axe.run(document, {resultTypes: ['violations']}).then(done, done)"
    )
    assert len(found["passes"]) > 10
    violations = found["violations"]
    assert [(one["id"], node["html"][:200]) for one in violations for node in one["nodes"]] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_a_long_name_of_a_model_does_not_squeeze_the_measures(width, browser, pages):
    show(browser, pages["a long name"], width)
    measures = "[...document.querySelectorAll('h2 + .scroll tbody th')]"
    heights = browser.execute_script(f"return {measures}.map(one => one.offsetHeight)")
    assert len(heights) >= 4 and heights[0] == min(heights) < 40


def test_the_search_box_finds_groups(browser, pages):
    show(browser, pages["40 groups"])
    shown = (
        "return [...document.querySelectorAll('table.dots tr[data-group]')]"
        ".filter(one => one.offsetParent).map(one => one.dataset.group)"
    )
    first = browser.execute_script(shown)
    assert len(first) == 5 * 8
    box = browser.find_element("css selector", ".search input")
    box.send_keys("REGION 1")
    assert set(browser.execute_script(shown)) == {f"region 1{k}" for k in range(10)}
    assert browser.find_element("css selector", ".search .count").text == "10 found"
    assert not browser.find_element("css selector", "tr.others").is_displayed()
    box.clear()
    box.send_keys("x\b")
    assert browser.execute_script(shown) == first
    assert browser.find_element("css selector", "tr.others").is_displayed()


def test_the_solver_is_collapsed_and_opens(browser, pages):
    show(browser, pages["one model, two groups"])
    every = browser.find_elements("css selector", "details")
    details = next(one for one in every if "KKT" in one.get_attribute("textContent"))
    table = details.find_element("css selector", "table")
    assert not table.is_displayed()
    details.find_element("css selector", "summary").click()
    assert table.is_displayed() and "KKT residual" in table.text


def test_colours_follow_the_medium(browser, pages):
    colours = {}
    for medium in MEDIA:
        show(browser, pages["one model, two groups"], 800, medium)
        colours[medium] = browser.execute_script(
            "return getComputedStyle(document.querySelector('.fairness-report')).backgroundColor"
        )
    assert colours["print"] == colours["light"] == "rgb(255, 255, 255)"
    assert colours["dark"] == "rgb(22, 24, 27)"


def test_the_console_has_no_errors(browser, pages):
    for page in pages.values():
        show(browser, page)
        assert browser.get_log("browser") == []
