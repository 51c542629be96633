"""The page that shows attention: what it is made of, and what it does in a real browser (Debian's chromium)."""
import html
import json
import re
import shutil

import numpy as np
import pytest

import multihead

from test_model import MODEL

LINE = "The dog sleeps because it is tired."
HOSTILE = ["</script><script>document.title='run'</script>", "<img src=x onerror=\"document.title='run'\">", "a\0b", "\u202eabc",
           "w" * (1 << 20), "=1+1", "\ud800".encode("utf-8", "replace").decode(), " ", ""]
AXES = {"critical", "serious"}


@pytest.fixture(scope="module")
def recording():
    return multihead.load(MODEL).record(LINE)


def soft(rng, *shape):
    scores = np.exp(3 * rng.standard_normal(shape))
    return (scores / scores.sum(-1, keepdims=True)).astype(np.float32)


def test_rollout_is_the_product_of_the_layers(recording):
    for weights, rollout in ((recording.encoder, recording.encoder_rollout), (recording.decoder, recording.decoder_rollout)):
        wanted = np.eye(weights.shape[-1])
        for layer, given in zip(weights.astype(float), rollout):
            wanted = (0.5 * layer.mean(0) + 0.5 * np.eye(len(wanted))) @ wanted
            assert np.abs(given - wanted).max() < 1e-5


def test_a_notebook_gets_a_frame_that_may_not_reach_out(recording):
    frame = recording._repr_html_()
    assert frame.startswith("<iframe") and "allow-same-origin" not in frame
    assert html.unescape(re.search('srcdoc="(.*)"', frame, re.S)[1]) == recording.page().html


def test_weights_of_any_library_are_taken(rng):
    weights = soft(rng, 2, 3, 3)
    wanted = multihead.show([weights], ["a", "b", "c"]).html
    assert multihead.show([weights[None].astype(np.float64)], ["a", "b", "c"]).html == wanted
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(weights[None], requires_grad=True)
    assert multihead.show((tensor,), ["a", "b", "c"]).html == wanted


def test_what_does_not_fit_is_refused(rng):
    square = soft(rng, 2, 3, 3)
    for arguments, sentence in (
        (([], ["a"]), "there is no layer"),
        (([square], ["a", "b"]), r"layer 1 of Attention has the shape \(2, 3, 3\)"),
        (([np.stack([square, square])], list("abc")), "a batch of 2 sequences"),
        (([square[0]], list("abc")), r"has the shape \(3, 3\)"),
        (([square[:, :0, :0]], []), "0 tokens"),
    ):
        with pytest.raises(ValueError, match=sentence):
            multihead.show(*arguments)
    with pytest.raises(ValueError, match="LAYER.HEAD"):
        multihead.show([square], list("abc"), heads="x")
    with pytest.raises(ValueError, match="2 words for 3 tokens"):
        multihead.show([square], list("abc"), words=[0, 1])


class Browser:
    """Chromium without a window, that notes every request and every word on the console."""

    def __init__(self):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.set_script_timeout(30)

    def open(self, path, hash=""):
        self.driver.get("about:blank")
        self.driver.get_log("performance")
        self.driver.get(f"file://{path}#{hash}")
        self.settled()

    def settled(self):
        self.run("""const done = arguments[0], look = () => document.documentElement.dataset.shown
            && document.documentElement.dataset.filled ? setTimeout(done, 50) : setTimeout(look, 20); look();""", wait=True)

    def run(self, script, *arguments, wait=False):
        return (self.driver.execute_async_script if wait else self.driver.execute_script)(script, *arguments)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)", selector)

    def hover(self, selector):
        from selenium.webdriver.common.action_chains import ActionChains

        element = self.driver.find_element("css selector", selector)
        ActionChains(self.driver).move_to_element(element).perform()

    def keys(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()
        self.settled()

    def requests(self):
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        urls = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith(("blob:", "data:"))]

    def console(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]


@pytest.fixture(scope="module")
def browser():
    pytest.importorskip("selenium")
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        pytest.skip("Debian's chromium and chromium-driver are not installed")
    browser = Browser()
    yield browser
    browser.driver.quit()


@pytest.fixture(scope="module")
def page(recording, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    recording.save(path)
    return path


VIEWS = {"lines": ".lines path", "matrix": ".matrix canvas", "text": ".text .token", "statistics": ".statistics tbody tr", "alignment": ".words path"}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_opens_alone_and_in_silence(browser, page, view, theme, tmp_path):
    browser.open(page, f"view={view}&theme={theme}")
    assert browser.texts(VIEWS[view])
    picture = tmp_path / f"{view}-{theme}.png"
    assert browser.driver.save_screenshot(str(picture)) and picture.stat().st_size > 20_000
    assert browser.requests() == [f"file://{page}"] and browser.console() == []
    axe = pytest.importorskip("axe_selenium_python").Axe(browser.driver)
    axe.inject()
    found = [(each["id"], each["nodes"][0]["html"]) for each in axe.run()["violations"] if each["impact"] in AXES]
    assert found == []


def in_8_bits(weight):
    return (round(255 * np.sqrt(float(weight))) / 255) ** 2


def stored(weight):
    return f"{in_8_bits(weight):.3f}"


def test_hovering_a_token_shows_the_weights_of_the_model(browser, page, recording):
    for group, weights in ((1, recording.cross), (2, recording.encoder), (3, recording.decoder)):
        browser.open(page, f"group={group}&layer=2&head=3&view=lines")
        browser.hover('[data-query="2"]')
        row = weights[1, 2, 2]
        shown = browser.texts(".lines .row > span")
        for text, weight in zip(shown, row):
            assert text == (stored(weight) if in_8_bits(weight) >= 0.002 else "")
            assert not text or abs(float(text) - weight) < 0.0045  # 8 bits and three digits


def test_the_matrix_says_the_weight_under_the_cursor(browser, page, recording):
    from selenium.webdriver.common.keys import Keys

    browser.open(page, "group=1&layer=1&head=2&view=matrix")
    browser.run("document.querySelector('.matrix canvas').focus()")
    browser.keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    weight = float(recording.cross[0, 1, 1, 1])
    assert f": {stored(weight)} (row 2, column 2)" in browser.text(".matrix .said")
    assert f"{recording.target[1]} → {recording.source[1]}: {stored(weight)}" in browser.text("#live")


def test_a_link_restores_what_was_looked_at(browser, page):
    wanted = "group=2&layer=1&head=4&view=text&heads=mean&words=1&token=3&theme=dark"
    browser.open(page, wanted)
    browser.run("dispatchEvent(new Event('hashchange'))")
    browser.settled()
    assert browser.run("return [document.documentElement.dataset.shown, document.documentElement.dataset.theme]") == ["2.1.4.text", "dark"]
    assert browser.run("return document.getElementById('join').checked") and browser.text("#head-name") == "Layer 1, mean of its heads"
    browser.keys("]")
    assert "layer=2" in browser.run("return location.hash")
    for nonsense in ("layer=99&head=-1&view=none&token=x&marks=a.b", "group=0", "%%%"):
        browser.open(page, nonsense)
        assert browser.texts(".lines path") and browser.console() == []


def test_keys_reach_everything(browser, page):
    from selenium.webdriver.common.keys import Keys

    browser.open(page, "group=2&layer=1&head=1")
    browser.keys("]", ".", "2")
    assert browser.run("return document.documentElement.dataset.shown") == "2.2.2.matrix"
    browser.run("document.querySelector('#grid [aria-selected=\"true\"]').focus()")
    browser.keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert browser.run("return document.documentElement.dataset.shown") == "2.3.3.matrix"
    browser.keys("1", "a")
    assert browser.text("#head-name") == "Layer 3, mean of its heads"
    browser.keys("g")
    assert browser.run("return location.hash").startswith("#group=3")
    browser.run("document.querySelector('[data-query=\"0\"]').focus()")
    browser.keys(Keys.ARROW_DOWN, Keys.ENTER)
    assert "token=2" in browser.run("return location.hash") and "(2) reads" in browser.text("#chosen caption")
    browser.keys(Keys.ESCAPE)
    assert "token=" not in browser.run("return location.hash")
    reached = set()
    browser.run("document.activeElement.blur()")
    for _ in range(40):
        browser.keys(Keys.TAB)
        reached.add(browser.run("const e = document.activeElement; return e.id || e.className || e.textContent"))
    assert {"theme", "help", "together", "join", "least", "cell", "token"} <= {name.split()[0] for name in reached if name.strip()}


def test_statistics_are_sorted_by_what_is_clicked(browser, page, recording):
    browser.open(page, "group=2&view=statistics")
    browser.run("document.querySelector('[data-column=\"entropy\"] button').click()")
    values = [float(text) for text in browser.texts("tbody td:nth-child(3)")]
    assert values == sorted(values, reverse=True) and len(values) == 12
    p = recording.encoder.astype(float)
    entropy = -(p * np.log(np.maximum(p, 1e-30))).sum(-1).mean(-1)
    assert abs(values[0] - entropy.max()) < 1e-3


def test_words_are_aligned_as_the_program_aligns_them(browser, page):
    model = multihead.load(MODEL)
    candidate = model.translations(LINE, whole=True).candidates[0]
    source, target = LINE.split(), candidate.text.split()
    browser.open(page, "group=1&layer=2&view=alignment")
    pairs = list(zip(browser.texts(".words tbody td:nth-child(2)"), browser.texts(".words tbody td:nth-child(1)")))
    assert sorted(pairs) == sorted((source[i], target[j]) for i, j in model.align(candidate))


def test_what_is_saved_holds_what_is_shown(browser, page, recording):
    browser.open(page, "group=1&layer=1&head=1&view=matrix")
    catch = """const done = arguments[0], old = URL.createObjectURL;
        URL.createObjectURL = (blob) => { if (blob.type === '%s') blob.text().then(done); return old.call(URL, blob); };
        document.querySelector('[data-save="%s"]').click();"""
    rows = browser.run(catch % ("text/csv", "csv"), wait=True).split("\n")
    assert len(rows) == 1 + len(recording.target)
    numbers = np.array([[float(cell) for cell in row.rsplit('"', 1)[1].lstrip(",").split(",")] for row in rows[1:]])
    assert np.abs(numbers - recording.cross[0, 0]).max() < 0.0045
    assert browser.run(catch % ("image/svg+xml", "svg"), wait=True).startswith("<svg")
    assert "PNG" in browser.run(catch % ("image/png", "png"), wait=True)[:8]
    assert browser.console() == []


def test_hostile_text_is_only_text(browser, rng, tmp_path):
    path = tmp_path / "page.html"
    page = multihead.show([soft(rng, 2, len(HOSTILE), len(HOSTILE))], HOSTILE, title="</title><script>document.title='run'</script>")
    page.save(path)
    assert len(page.html) < 200_000
    for view in ("lines", "text", "matrix"):
        browser.open(path, f"view={view}&words=1" if view == "text" else f"view={view}")
        assert browser.run("return document.title") != "run" and browser.run("return document.images.length") == 0
        assert browser.requests() == [f"file://{path}"] and browser.console() == []
    browser.open(path, "view=lines")
    shown = browser.texts(".lines .column:first-child .token")
    assert shown[0].startswith("</script><script>") and shown[2] == "a␀b" and shown[3] == "⟨U+202E⟩abc" and len(shown[4]) < 40
    assert shown[7] == "·" and shown[8] == "∅"


def test_a_phone_needs_no_sideways_scrolling(browser, page):
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True})
    try:
        for view in VIEWS:
            browser.open(page, f"view={view}")
            assert browser.run("return document.documentElement.scrollWidth") <= 390, view
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_long_text_stays_responsive(browser, tmp_path):
    """2,048 tokens: pictures and the largest weights, but for the head that was chosen."""
    rng, n = np.random.default_rng(1), 2048
    tokens = [f"t{k}" for k in range(n)]
    layers = [soft(rng, 4, n, n) for _ in range(3)]
    path = tmp_path / "page.html"
    multihead.show(layers, tokens, heads="2.1").save(path)
    assert path.stat().st_size < 16 << 20
    browser.open(path, "layer=2&head=1&view=matrix")
    assert "The text is long" in browser.text("#note")
    took = browser.run("""const done = arguments[0], began = performance.now();
        document.querySelector('[data-layer="2"][data-head="3"]').click();
        const look = () => document.documentElement.dataset.shown.startsWith("1.3.4") ? done(performance.now() - began) : setTimeout(look, 5);
        look();""", wait=True)
    assert took < 3000
    browser.open(path, "layer=1&head=1&view=text&token=5")
    best = int(layers[0][0, 4].argmax())
    assert browser.text("#chosen tbody td") == f"t{best}"
    assert abs(float(browser.text("#chosen tbody td:nth-child(3)")) - layers[0][0, 4, best]) < 0.0045


def test_the_teaching_page_computes_what_the_library_computes(browser):
    path = MODEL.parents[1] / "docs/attention.html"
    browser.driver.get("about:blank")
    browser.requests(), browser.console()  # those of the test before
    browser.driver.get(f"file://{path}")
    data = json.loads(browser.text("#data"))
    x, wq, wk, wv, wo = (np.array(data[name], np.float32) for name in ("x", "query", "key", "value", "out"))
    q, k, v = ((x @ w).reshape(1, 4, 2, 2).swapaxes(1, 2).copy() for w in (wq, wk, wv))
    for causal, name in ((False, "all"), (True, "causal")):
        if causal:
            browser.run("document.getElementById('causal').click()")
        shown = json.loads(browser.run("return document.documentElement.dataset.numbers"))
        o, lse = multihead.attention(q, k, v, mask=multihead.causal() if causal else None, return_lse=True)
        weights = multihead.attention_weights(q, k, lse, mask=multihead.causal() if causal else None)[0]
        joined = o[0].swapaxes(0, 1).reshape(4, 4)
        for key, wanted in (("weights", weights), ("joined", joined), ("output", joined @ wo)):
            assert np.abs(np.array(shown[key]) - wanted).max() < 1e-5
            assert np.abs(np.array(data["library"][name][key]) - wanted).max() < 1e-5
    assert browser.text("#scores tbody td") == f"{float(q[0, 0, 0] @ k[0, 0, 0]) / np.sqrt(2):.3f}"
    before = browser.text("#output tbody td")
    browser.run("const field = document.querySelector('#x input'); field.value = '3'; field.dispatchEvent(new Event('input'))")
    assert browser.text("#output tbody td") != before
    browser.hover("#weights tbody td")
    assert "reads “the”: exp(" in browser.text("#why")
    axe = pytest.importorskip("axe_selenium_python").Axe(browser.driver)
    axe.inject()
    assert [each["id"] for each in axe.run()["violations"] if each["impact"] in AXES] == []
    assert browser.requests() == [f"file://{path}"] and browser.console() == []
