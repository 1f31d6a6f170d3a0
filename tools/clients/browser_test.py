"""The page at / in a real browser: Debian's chromium, driven by Playwright.

Every test has a page of its own, and each of them also has to come from this server alone, log nothing,
break no rule of its content-security-policy and throw no error. `--screenshot FILE` writes the picture
that docs/ keeps instead of testing."""

import base64
import json
import os
import re
import shutil
import sys

from playwright.sync_api import expect, sync_playwright

import rig

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
PICTURE = rig.testdata("media", "photo.jpg")

server = rig.Server(model="toy-vision")
locked_server = rig.Server("--api-key", "the-key", model="toy-vision")
browser = None


class Page:
    """A page and what it must not do."""

    def __init__(self, url=server.url, size=WIDE, scheme="light"):
        # What the tests hand to the clipboard and drop is no one else's: a context for each.
        self.context = browser.new_context(viewport=size, color_scheme=scheme)
        self.context.set_default_timeout(rig.PATIENCE * 1000)
        self.url, self.faults, self.expected = url, [], []
        self.page = self.context.new_page()
        self.page.on("console", lambda m: self.faults.append("console: " + m.text))
        self.page.on("pageerror", lambda e: self.faults.append("error: %s" % e))
        self.page.on("request", self.note)
        self.page.goto(url + "/")

    def note(self, request):
        if not request.url.startswith((self.url + "/", "data:")):
            self.faults.append("asked elsewhere: " + request.url)

    def __enter__(self):
        return self.page

    def __exit__(self, kind, *_):
        # The browser itself logs answers of status 4xx and failures; the page cannot keep it from that.
        faults = [f for f in self.faults if not re.search("Failed to load.*( status of 4|REFUSED)", f)]
        self.context.close()
        assert kind is not None or not faults, faults


def _ask(page):
    """Presses the button and gives the JSON answer and the status."""
    with page.expect_response("**/v1/systemone") as waiting:
        page.click("#send")
    response = waiting.value
    expect(page.locator("#send")).to_be_enabled()
    return response.json(), response.status, json.loads(response.request.post_data)


def _bars(page, question):
    """Name and percent of each bar, as seen and as read to those who do not see; both have to agree."""
    bars = []
    for bar in page.locator('[data-answer="%s"] .bar' % question).all():
        name, value = bar.locator(".name").inner_text(), bar.locator(".value").inner_text()
        assert bar.get_attribute("aria-label") == name + ": " + value
        width = bar.locator(".fill").evaluate("e => e.getBoundingClientRect().width")
        track = bar.locator(".track").evaluate("e => e.getBoundingClientRect().width")
        percent = float(value.split()[0])
        assert abs(100 * width / track - percent) < 1, (name, width, track, value)
        bars.append((name, percent))
    return bars


def _percent(p):
    """As the page writes it."""
    return float("%.2f" % (100 * p) if 0 < p < 0.001 else "%.1f" % (100 * p))


def _close(bars, wanted):
    assert [b[0] for b in bars] == [w[0] for w in wanted], (bars, wanted)
    assert all(rig.near(b[1], _percent(w[1]), 0.1001) for b, w in zip(bars, wanted)), (bars, wanted)


def _only_question(page, kind):
    """Removes the example's questions and adds one; gives its box."""
    while page.locator("#questions fieldset").count():
        page.locator("#questions [aria-label='Remove this question']").first.click()
    page.click("[data-add=%s]" % kind)
    return page.locator("#questions fieldset").last


def every_type_is_asked_by_hand_and_its_bars_are_the_answer():
    with Page() as page:
        page.fill("#state", "The box was open.")
        box = _only_question(page, "noul")
        box.locator(".q-id").fill("open")
        box.locator(".q-text").fill("Is it open?")
        box.locator(".q-true").fill("It is open")
        page.click("[data-add=choice]")
        box = page.locator("#questions fieldset").last
        box.locator(".q-id").fill("who")
        box.locator(".q-text").fill('{"task": "Pick"}')
        box.get_by_role("button", name="+ Option").click()
        for i, (name, text) in enumerate((("10", "Ten"), ("b", ""), ("2", "Two"))):
            box.locator(".o-name").nth(i).fill(name)
            box.locator(".o-text").nth(i).fill(text)
        page.click("[data-add=score]")
        box = page.locator("#questions fieldset").last
        box.locator(".q-id").fill("when")
        box.get_by_role("button", name="+ Level").click()
        for i, text in enumerate(("later", "soon", "now")):
            box.locator(".o-text").nth(i).fill(text)
        answer, status, sent = _ask(page)
        assert status == 200
        assert sent == {"state": "The box was open.", "questions": {
            "open": {"type": "noul", "instructions": "Is it open?", "criteria": {"true": "It is open"}},
            "who": {"type": "choice", "instructions": {"task": "Pick"},
                    "criteria": {"10": "Ten", "b": None, "2": "Two"}},
            "when": {"type": "score", "criteria": ["later", "soon", "now"]}}}, sent
        assert answer == server.answer(sent)
        answers = answer["answers"]
        _close(_bars(page, "open"), [("yes", answers["open"]["noul"]), ("no", 1 - answers["open"]["noul"])])
        _close(sorted(_bars(page, "who")), sorted(answers["who"]["probabilities"].items()))
        _close(_bars(page, "when"), [("%d: %s" % (i, text), answers["when"]["probabilities"][str(i)])
                                     for i, text in enumerate(("later", "soon", "now"))])
        facts = page.inner_text('[data-answer="when"] .facts')
        assert str(answers["when"]["score"]) in facts and str(answers["when"]["confidence"]) in facts
        best = page.locator('[data-answer="who"] .bar.best .name').inner_text()
        assert best == answers["who"]["choice"]
        timing = page.inner_text("#timing")
        assert timing.startswith("%d tokens. " % answer["usage"]["input_tokens"]), timing
        assert "model " in timing and "round trip" in timing, timing
        page.click("#raw-box summary")
        assert json.loads(page.inner_text("#raw")) == answer


def options_named_by_numbers_are_sent_and_shown_in_their_order():
    with Page() as page:
        box = _only_question(page, "choice")
        box.locator(".q-id").fill("n")
        for i, name in enumerate(("9", "1")):
            box.locator(".o-name").nth(i).fill(name)
        page.click("[data-add=noul]")
        page.locator("#questions fieldset").last.locator(".q-id").fill("0")
        page.click("input[value=whole]")
        page.click("input[name=mode][value=form]")
        answer, _, sent = _ask(page)
        assert list(sent["questions"]) == list(answer["answers"]) == ["n", "0"]
        assert list(sent["questions"]["n"]["criteria"]) == ["9", "1"]
        assert [b[0] for b in _bars(page, "n")] == ["9", "1"], _bars(page, "n")
        assert page.locator("#bars h3").all_inner_texts() == ["n", "0"]
        page.click("#raw-box summary")
        raw = page.inner_text("#raw")
        assert json.dumps(json.loads(raw)) == json.dumps(answer)


def a_whole_request_is_pasted_and_sent_as_it_stands():
    request = {"model": "jev-latest", "state": {"n": 1.5, "big": 12345678901234567890, "t": "ä\"<b>'"},
               "questions": {"q 🙂": {"type": "noul"}}}
    text = json.dumps(request, ensure_ascii=False).replace("1.5", "1.50")
    with Page() as page:
        page.click("input[value=whole]")
        page.fill("#whole", text)
        with page.expect_request("**/v1/systemone") as waiting:
            page.click("#send")
        assert waiting.value.post_data == text
        expect(page.locator('[data-answer="q 🙂"] .bar')).to_have_count(2)


def the_form_and_the_whole_request_say_the_same():
    with Page() as page:
        page.click("input[value=whole]")
        first = page.input_value("#whole")
        assert set(json.loads(first)["questions"]) == {"refund", "queue", "urgency"}
        page.click("input[name=mode][value=form]")
        page.click("input[value=whole]")
        assert page.input_value("#whole") == first
        # Every member and digit comes back, those that have no field too.
        other = '''{
  "model": "jev-latest",
  "truncate": true,
  "state": [
    {
      "2": 1.50,
      "1": 12345678901234567890,
      "__proto__": -0.0e5,
      "text": "a \\" 12 : {",
      "none": [{}, [], null, true]
    }
  ],
  "questions": {
    "s": {"type": "score", "instructions": ["How", "much"], "criteria": ["low", {"as": "high"}]},
    "c": {"type": "choice", "criteria": {"a": null, "b": {"x": [1]}, "7": "seven", "3": "three"}},
    "n": {"type": "noul", "criteria": {"true": "T", "false": "F"}}
  }
}'''
        tight = re.compile(r'\s(?=(?:[^"\\]|\\.|"(?:[^"\\]|\\.)*")*$)')  # blanks outside of texts
        page.fill("#whole", other)
        page.click("input[name=mode][value=form]")
        assert page.locator("#questions fieldset").count() == 3
        page.click("input[value=whole]")
        assert tight.sub("", page.input_value("#whole")) == tight.sub("", other), page.input_value("#whole")


def what_the_form_cannot_show_stays_a_whole_request():
    for text, words in (("{", "JSON"), ("[]", "a request is an object"),
                        ('{"state":"","questions":{"b":{"type":"box"}}}', 'no fields for question "b"'),
                        ('{"state":"","questions":{"b":{"type":"constructor"}}}', "no fields"),
                        ('{"state":"","questions":{"b":{"type":"choice","criteria":["a"]}}}', "no fields"),
                        ('{"state":"","questions":{"b":{"type":"noul","instructions":"[1]"}}}', "would change"),
                        ('{"state":"","questions":{"b":{"type":"noul","else":1}}}', "would change"),
                        ('{"questions":{}}', "needs a state"),
                        ('{"state":"","images":[{"url":"data:,"}],"questions":{}}', "data URLs only")):
        with Page() as page:
            page.click("input[value=whole]")
            page.fill("#whole", text)
            page.click("input[name=mode][value=form]")
            expect(page.locator("#whole")).to_be_visible()
            assert page.input_value("#whole") == text
            expect(page.locator("#whole-bad")).to_contain_text(words)


def pictures_are_chosen_dropped_and_removed():
    with Page() as page:
        without = _ask(page)[0]["usage"]["input_tokens"]
        page.set_input_files("#files", PICTURE)
        expect(page.locator("#pictures figure")).to_have_count(1)
        with open(rig.testdata("media", "rgb8.png"), "rb") as f:
            data = base64.b64encode(f.read()).decode()
        transfer = page.evaluate_handle(
            """data => { const t = new DataTransfer();
            t.items.add(new File([Uint8Array.from(atob(data), c => c.charCodeAt(0))], 'small.png',
                                 {type: 'image/png'}));
            return t; }""", data)
        page.dispatch_event("#drop", "dragover", {"dataTransfer": transfer})
        assert "over" in page.get_attribute("#drop", "class")
        page.dispatch_event("#drop", "drop", {"dataTransfer": transfer})
        expect(page.locator("#pictures figure")).to_have_count(2)
        assert "over" not in page.get_attribute("#drop", "class")
        expect(page.locator("#pictures figcaption").nth(1)).to_contain_text("small.png")
        shown = "e => e.complete && e.naturalWidth > 0"
        assert all(img.evaluate(shown) for img in page.locator("#pictures img").all())
        answer, status, sent = _ask(page)
        assert status == 200 and len(sent["images"]) == 2
        assert answer["usage"]["input_tokens"] > without
        page.get_by_role("button", name="Remove photo.jpg").click()
        page.get_by_role("button", name="Remove small.png").click()
        assert _ask(page)[0]["usage"]["input_tokens"] == without


def a_broken_picture_is_named_beside_the_pictures():
    with Page() as page:
        page.set_input_files("#files", {"name": "no.png", "mimeType": "image/png", "buffer": b"no picture"})
        expect(page.locator("#pictures figure")).to_have_count(1)
        assert _ask(page)[1] == 422
        expect(page.locator("#images-bad")).to_contain_text("picture 1: ")


def an_error_is_shown_at_its_question_and_focused():
    with Page() as page:
        box = _only_question(page, "score")
        for _ in range(9):
            box.get_by_role("button", name="+ Level").click()
        _, status, _ = _ask(page)
        assert status == 422
        expect(box.locator(".bad")).to_contain_text("11")
        expect(page.locator("#status")).to_have_text("Refused, status 422.")
        box.locator("[aria-label='Remove this level']").last.click()
        assert _ask(page)[1] == 200
        expect(box.locator(".bad")).to_be_hidden()
        box.locator(".q-id").fill("")
        assert _ask(page)[1] == 422
        expect(box.locator(".q-id")).to_be_focused()
        assert box.locator(".q-id").get_attribute("aria-invalid") == "true"


def what_cannot_be_sent_is_said_before_sending():
    with Page() as page:
        page.click("input[name=state-kind][value=json]")
        page.fill("#state", "{'no': json}")
        page.click("#send")
        expect(page.locator("#state-bad")).to_contain_text("not JSON")
        assert page.get_attribute("#state", "aria-invalid") == "true"
        expect(page.locator("#state")).to_be_focused()
        page.fill("#state", "{}")
        page.click("[data-add=noul]")
        page.locator("#questions fieldset").last.locator(".q-id").fill("refund")
        page.click("#send")
        expect(page.locator("#questions fieldset").last.locator(".bad")).to_contain_text("refund")
        expect(page.locator("#status")).to_contain_text("Not sent")


def a_wrong_key_is_said_at_the_key():
    with Page(locked_server.url) as page:
        page.fill("#key", "wrong")
        assert _ask(page)[1] == 401
        expect(page.locator("#key-bad")).to_be_visible()
        expect(page.locator("#key")).to_be_focused()
        assert page.get_attribute("#key", "aria-invalid") == "true"
        page.fill("#key", "the-key")
        assert _ask(page)[1] == 200
        expect(page.locator("#key-bad")).to_be_hidden()
        page.click("#curl-box summary")
        assert "the-key" not in page.inner_text("#curl") and "CLEF_API_KEY" in page.inner_text("#curl")


def a_server_that_went_away_is_said():
    gone = rig.Server(model="toy-vision")
    with Page(gone.url) as page:
        page.route("**/v1/systemone", lambda route: route.abort("connectionrefused"))
        page.click("#send")
        expect(page.locator("#error")).to_contain_text("cannot be reached")
    gone.stop()


def the_keyboard_alone_is_enough():
    with Page() as page:
        page.focus("#state")
        page.keyboard.press("Control+A")
        page.keyboard.type("Typed.")
        seen = []
        for _ in range(60):
            page.keyboard.press("Tab")
            seen.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
            if seen[-1] == "send":
                break
        assert {"files", "q-id", "q-text", "o-name", "o-text", "key", "send"} <= set(seen), seen
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid", outline
        with page.expect_response("**/v1/systemone") as waiting:
            page.keyboard.press("Enter")
        assert json.loads(waiting.value.request.post_data)["state"] == "Typed."
        expect(page.locator("#status")).to_contain_text("Answered")
        page.focus("#state")
        with page.expect_response("**/v1/systemone") as waiting:
            page.keyboard.press("Control+Enter")
        assert waiting.value.status == 200
        page.focus("input[name=mode][value=form]")
        page.keyboard.press("ArrowRight")
        expect(page.locator("#whole")).to_be_visible()


def a_long_question_can_be_stopped():
    slow = rig.Server("--chunk", 1, model="toy-vision")
    with Page(slow.url) as page:
        page.fill("#state", "7" * 14000)
        page.click("#send")
        expect(page.locator("#stop")).to_be_visible()
        page.click("#stop")
        expect(page.locator("#status")).to_have_text("Stopped.")
        expect(page.locator("#send")).to_be_enabled()
        slow.await_metric("clef_engine_cancelled_total", 1)
    slow.stop()


def the_curl_line_gives_the_same_answer():
    with Page() as page:
        page.fill("#state", "It's \"quoted\" $HOME `x` \\ ä")
        answer = _ask(page)[0]
        page.click("#curl-box summary")
        line = page.inner_text("#curl")
        done = rig.subprocess.run(["sh", "-c", line], capture_output=True, text=True)
        assert json.loads(done.stdout) == answer, (line, done.stdout, done.stderr)


def what_comes_from_outside_is_text():
    evil = '<img src=x onerror="document.title=1">'
    with Page() as page:
        box = _only_question(page, "choice")
        box.locator(".q-id").fill(evil)
        box.locator(".o-name").nth(0).fill(evil)
        assert _ask(page)[1] == 200
        expect(page.locator("#bars h3")).to_have_text(evil)
        assert page.locator("#bars img").count() == 0 and page.title() == "clef: ask"


def a_phone_needs_no_sideways_scrolling():
    for scheme in ("light", "dark"):
        with Page(size=PHONE, scheme=scheme) as page:
            page.locator("#questions .q-id").first.fill("a" * 200)
            page.locator("#questions .o-name").first.fill("b" * 200)
            page.set_input_files("#files", PICTURE)
            expect(page.locator("#pictures figure")).to_have_count(1)
            _ask(page)
            page.click("#raw-box summary")
            page.click("#curl-box summary")
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
            small = page.evaluate(
                "[...document.querySelectorAll('button, input, textarea, summary')]"
                ".filter(e => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth).length")
            assert small == 0


def both_schemes_are_readable():
    """The contrast of text with what is behind it, as WCAG 2 counts it, is 4.5 or more."""
    for scheme in ("light", "dark"):
        with Page(scheme=scheme) as page:
            page.fill("#state", "")
            box = _only_question(page, "noul")
            box.locator(".q-id").fill("")
            _ask(page)
            box.locator(".q-id").fill("x")
            bad = page.evaluate("""() => {
                const rgb = text => text.match(/[\\d.]+/g).map(Number);
                const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92
                    : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
                const behind = e => { for (; e; e = e.parentElement) {
                    const c = rgb(getComputedStyle(e).backgroundColor);
                    if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
                const poor = [];
                for (const e of document.querySelectorAll('body *')) {
                    if (!e.checkVisibility() || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
                        continue;
                    const [a, b] = [light(rgb(getComputedStyle(e).color).slice(0, 3)), light(behind(e))];
                    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
                    if (ratio < 4.5) poor.push(e.tagName + ' ' + e.className + ' ' + ratio.toFixed(2));
                }
                return poor; }""")
            assert bad == [], bad
            background = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (background == "rgb(20, 23, 29)") == (scheme == "dark"), background


def no_other_origin_may_frame_or_script_it():
    _, headers, body = server.ask(None, "/", method="GET")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy, policy
    assert "unsafe" not in policy and "*" not in policy, policy
    text = body.decode()
    assert "http://" not in text and "https://" not in text and not re.search(r"\son\w+=", text)


def _screenshot(path):
    with Page() as page:
        page.set_input_files("#files", PICTURE)
        expect(page.locator("#pictures figure")).to_have_count(1)
        _ask(page)
        page.click("#raw-box summary")
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=path, full_page=True)


if __name__ == "__main__":
    os.environ["PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD"] = "1"
    with sync_playwright() as playwright:
        # Without a sandbox, because it may run as root; the only pages are the server's own.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        if sys.argv[1:2] == ["--screenshot"]:
            _screenshot(sys.argv[2])
        else:
            rig.run()
