#!/usr/bin/env python3
"""Looks at reports in Chromium as a user does: what they show, by mouse and by keyboard, and that they ask for nothing.

  report_browser_test.py ROOT PENSTOCK      ROOT: the project; PENSTOCK: the command

Without Chromium and its driver it says so and passes.
"""
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT, PENSTOCK = (Path(sys.argv[1]), sys.argv[2]) if len(sys.argv) > 2 else sys.exit(__doc__)
sys.path[:0] = [str(ROOT / "scripts"), str(Path(__file__).resolve().parent)]
import browser
from profile_builder import ProfileBuilder, pipeline

HOSTILE = {
    "markup": '<img src=x onerror="window.broken=1">',
    "script": "</script><script>window.broken=2</script>",
    "comment": "<!--<script> ]]> -->",
    "quotes": "\"'`${window.broken=3}&lt;&amp;",
    "turned": "a\u202eb\u2066c",
    "arabic": "\u0645\u0631\u062d\u0628\u0627",
    "control": "bell\u0007, line\nend, nothing\u0000, \u2028\u2029",
    "proto": "__proto__",
    "empty": "",
    "long": "very " * 2000,
}


def hostile():
    made = ProfileBuilder(devices=[HOSTILE["markup"], "host:0"])
    names = list(HOSTILE.values())
    nodes = [(name, "parallel for", 0, (at - 1,) if at > 0 else (), 1000) for at, name in enumerate(names)]
    executable = made.graph(HOSTILE["script"], ["compute"], nodes, report={"notes": [HOSTILE["markup"]]})
    for at, name in enumerate(names):
        made.span("kernel", 100 * at, 100 * at + 90, name, HOSTILE["quotes"], executable, 0, at, 0, 0)
    made.pipeline([(name, 1, 0.5) for name in names], 0)
    made.span("run", 0, 100 * len(names), HOSTILE["comment"], HOSTILE["turned"], executable, 0, slot=0)
    return made


class Report(unittest.TestCase):
    """A test for each thing that a user does; each opens its page anew."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="penstock_report_")
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.addClassCleanup(cls.browser.close)
        cls.pages = {}

    def open(self, name, make, findings=None, lost_spans=0):
        if name not in self.pages:
            profile, page = Path(self.folder.name, name + ".profile"), Path(self.folder.name, name + ".html")
            make().write(profile, lost_spans)
            subprocess.run([PENSTOCK, "report", str(profile), "--out", str(page)], check=True,
                           stdout=subprocess.DEVNULL)
            if findings is not None:
                text, count = re.subn(r'(?<=id="findings">)[^<]*', lambda _: json.dumps(findings), page.read_text())
                self.assertEqual(count, 1)
                page.write_text(text)
            self.pages[name] = page
        self.browser.open(self.pages[name])
        self.browser.frame()

    def tearDown(self):
        self.assertEqual(self.browser.messages(), [], "the console has something to say")
        self.assertEqual([url for url in self.browser.requests() if not url.startswith("file:")
                          or not url.endswith(".html")], [])

    def run_js(self, script, *arguments):
        return self.browser.run(script, *arguments)

    def text(self, element):
        return self.run_js("return document.getElementById(arguments[0]).innerText", element)

    def span(self, name, run):
        """The span of that name in a run."""
        return self.run_js("""const p = report.profile;
            for (let at = 0; at < p.size; ++at) {
              if (p.nameOf(at) === arguments[0] && p.run[at] === arguments[1]) return at;
            }""", name, run)

    def point(self, span):
        """Where a span is drawn in the window."""
        return self.run_js("""const at = report.timeline.pointOf(arguments[0]);
            const box = report.timeline.canvas.getBoundingClientRect();
            return [box.left + at.x, box.top + at.y];""", span)

    def colour(self, canvas, x, y):
        """Of a point in the window, from what is drawn."""
        return self.run_js("""const canvas = document.getElementById(arguments[0]);
            const box = canvas.getBoundingClientRect();
            const [x, y] = [arguments[1] - box.left, arguments[2] - box.top].map(Math.round);
            return [...canvas.getContext("2d").getImageData(x, y, 1, 1).data];""", canvas, x, y)

    def press_in(self, element, text):
        """Presses the button of that text in an element."""
        self.run_js("""[...document.getElementById(arguments[0]).querySelectorAll("button")]
            .find(button => button.innerText === arguments[1]).click()""", element, text)

    def shown(self):
        return self.run_js("return [report.view.begin, report.view.end]")

    def selected(self):
        return self.run_js("return report.selection.span")

    # --- names ------------------------------------------------------------------------------------------------------

    def test_hostile_names_are_text_everywhere(self):
        self.open("hostile", hostile, lost_spans=1234)
        parts = (ROOT / "src/cli/report/page.html").read_text().count("<script")
        for tab in ("nodes", "graph", "engines", "pipelines", "memory", "submission", "findings"):
            self.run_js("document.getElementById('tab-' + arguments[0]).click()", tab)
        for at in range(len(HOSTILE)):
            self.run_js("report.selection.set(arguments[0], true)", at)
            self.browser.frame()
        self.assertEqual(self.run_js("return [window.broken ?? 0, document.images.length, document.scripts.length]"),
                         [0, 0, parts])
        self.assertEqual(self.run_js("return Object.keys(Object.prototype).length"), 0)
        self.run_js("document.getElementById('tab-nodes').click()")
        table = self.text("panel-nodes")
        for name in ("markup", "script", "comment", "quotes", "arabic", "proto"):
            self.assertIn(HOSTILE[name], table)
        self.assertIn("a\u27e8U+202E\u27e9b\u27e8U+2066\u27e9c", table)
        self.assertIn("bell\u2407, line\u240aend, nothing\u2400, \u27e8U+2028\u27e9\u27e8U+2029\u27e9", table)
        self.assertIn("(no name)", table)
        self.assertNotIn("very " * 100, table)
        self.run_js("report.selection.set(9, true)")
        self.assertIn("(10\u202f000 letters)", self.run_js("return report.profile.nameOf(9)"))
        self.assertLess(len(self.text("details")), 1500)
        self.assertIn("1\u202f234", self.text("facts"))
        self.assertLessEqual(self.run_js("return document.documentElement.scrollWidth"), 1600)

    # --- timeline ---------------------------------------------------------------------------------------------------

    def test_a_click_shows_what_a_span_is_and_what_it_waited_for(self):
        self.open("pipeline", lambda: pipeline(200))
        self.run_js("report.view.show(4000, 4600)")
        self.browser.frame()
        blur = self.span("blur", 50)
        x, y = self.point(blur)
        self.assertEqual(self.colour("timeline", x, y - 6)[:3], [0, 145, 107])  # a kernel's green, in the third shade
        self.browser.hover(x, y)
        self.assertIn("blur", self.text("tip"))
        self.browser.click(x, y)
        self.assertEqual(self.selected(), blur)
        details = self.text("details")
        for words in ("blur", "kernel (parallel for)", "app.cc:12", "photos", "50, slot 2", "4.1000 ms", "110 µs",
                      "reads ≤ 1.00 MiB, writes ≤ 1.00 MiB", "≤ 19.1 GB/s", "upload x, which ended as this began",
                      "200 times in all"):
            self.assertIn(words, details)
        # The same node's other runs, and the node before.
        self.press_in("details", "Next \u203a")
        self.assertEqual(self.selected(), self.span("blur", 51))
        self.press_in("details", "upload x")
        self.assertEqual(self.selected(), self.span("upload x", 51))
        self.assertIn("17.5 GB/s", self.text("details"))

    def test_wheel_and_buttons_zoom_and_dragging_moves(self):
        self.open("pipeline", lambda: pipeline(200))
        x, y = self.point(self.span("blur", 50))
        at = "return report.timeline.time(arguments[0] - report.timeline.canvas.getBoundingClientRect().left)"
        before, (begin, end) = self.run_js(at, x), self.shown()
        self.browser.wheel(x, y, -400)
        nearer = self.shown()
        self.assertLess(nearer[1] - nearer[0], (end - begin) / 1.5)
        self.assertAlmostEqual(self.run_js(at, x), before, delta=(end - begin) / 500)
        self.browser.drag(x, y, x - 200, y)
        moved = self.shown()
        self.assertAlmostEqual(moved[1] - moved[0], nearer[1] - nearer[0], delta=0.01)
        self.assertGreater(moved[0], nearer[0])
        self.assertAlmostEqual(self.run_js(at, x - 200), before, delta=(end - begin) / 500)
        self.run_js("document.getElementById('zoom-out').click()")
        self.assertGreater(self.shown()[1] - self.shown()[0], moved[1] - moved[0])
        self.run_js("document.getElementById('fit').click()")
        self.assertEqual(self.shown(), [begin, end])
        # The minimap moves what is shown.
        self.run_js("report.view.show(0, 500)")
        self.browser.click(1200, 62)
        self.assertGreater(self.shown()[0], 5000)

    def test_search_marks_hits_and_goes_from_one_to_the_next(self):
        self.open("pipeline", lambda: pipeline(200))
        self.browser.press("/")
        self.browser.press(*"sharp")
        self.assertEqual(self.text("hits"), "200 hits")
        self.browser.press("Enter")
        self.assertEqual((self.text("hits"), self.selected()), ("1 of 200", self.span("sharpen", 0)))
        self.browser.press("Enter")
        self.assertEqual((self.text("hits"), self.selected()), ("2 of 200", self.span("sharpen", 1)))
        self.browser.press("Enter", held=["Shift"])
        self.assertEqual(self.selected(), self.span("sharpen", 0))
        x, y = self.point(self.span("sharpen", 0))
        self.assertEqual(self.colour("timeline", x, y + 5)[:3], [194, 0, 107])  # the mark below a hit
        self.browser.press("Escape")
        self.assertEqual(self.text("hits"), "")
        self.browser.press("/", *"app.cc:14")  # a source line
        self.assertEqual(self.text("hits"), "200 hits")
        self.browser.press(*"xx")
        self.assertEqual(self.text("hits"), "nothing found")

    def test_the_keyboard_alone_is_enough(self):
        self.open("without findings", lambda: pipeline(200), findings=[])
        self.run_js("window.reached = []; addEventListener('focusin', event => reached.push(event.target.id))")
        self.browser.press(*["Tab"] * 25)
        reached = self.run_js("return reached")
        wanted = ["query", "previous-hit", "next-hit", "ask-help", "timeline", "zoom-out", "details", "tab-nodes",
                  "panel-nodes"]
        self.assertEqual([name for name in reached if name in wanted][:len(wanted)], wanted)
        self.run_js("document.getElementById('timeline').focus()")
        begin, end = self.shown()
        self.browser.press("+", "+", "+")
        nearer = self.shown()
        self.assertLess(nearer[1] - nearer[0], (end - begin) / 3)
        self.browser.press("Right")
        self.assertGreater(self.shown()[0], nearer[0])
        self.browser.press("Left")
        self.assertAlmostEqual(self.shown()[0], nearer[0], delta=1)
        self.browser.press("-")
        self.assertGreater(self.shown()[1] - self.shown()[0], nearer[1] - nearer[0])
        # Down to the launches' row, a span of it, and the one behind it.
        self.browser.press("Down", "Enter")
        self.assertIn("launch photos", self.text("details"))
        first = self.selected()
        self.browser.press("]")
        self.assertEqual(self.run_js("const p = report.profile; return p.run[arguments[1]] - p.run[arguments[0]]",
                                     first, self.selected()), 1)
        self.assertIn("launch photos", self.run_js("return document.getElementById('status').textContent"))
        # Folding takes rows away.
        rows = self.run_js("return report.tracks.rows.length")
        self.browser.press("Up", "Enter")
        self.assertEqual(self.run_js("return report.tracks.rows.length"), rows - 1)
        self.browser.press("Home")
        self.assertEqual(self.shown(), [begin, end])
        self.browser.press("Escape")
        self.assertEqual(self.selected(), -1)
        self.browser.press("?")
        self.assertTrue(self.run_js("return document.getElementById('help').open"))
        self.assertIn("zoom to the selected span", self.text("help"))
        self.browser.press("Escape")
        self.assertFalse(self.run_js("return document.getElementById('help').open"))
        # Tabs go by arrows.
        self.run_js("document.getElementById('tab-nodes').focus()")
        self.browser.press("Right")
        self.assertEqual(self.run_js("return [document.activeElement.id, document.activeElement.ariaSelected]"),
                         ["tab-graph", "true"])

    # --- panels -----------------------------------------------------------------------------------------------------

    def test_the_graph_shows_the_critical_path_and_selects_in_the_timeline(self):
        self.open("pipeline", lambda: pipeline(200))
        self.run_js("document.getElementById('tab-graph').click()")
        self.browser.frame()
        self.assertIn("The median of 200 runs took 290 µs. Its critical path, with thick outlines, has 5 nodes, "
                      "which took 280 µs; for 10.0 µs none of them ran.",
                      self.text("panel-graph"))
        place = """const view = report.planView(), at = view.pointOf(arguments[0]);
                   const box = view.canvas.getBoundingClientRect();
                   return [box.left + at.x, box.top + at.y]"""
        x, y = self.run_js(place, 2)
        self.assertEqual(self.colour("plan", x + 50, y + 12)[:3], [213, 94, 0])  # it takes the largest share
        self.browser.click(x, y)
        self.assertEqual(self.run_js("return [report.profile.nameOf(report.selection.span), report.planView().node]"),
                         ["blur", 2])
        begin, end = self.shown()
        selected = self.run_js("return report.profile.begin[report.selection.span]")
        self.assertTrue(begin <= selected <= end)
        self.run_js("document.getElementById('plan').focus()")
        self.browser.press("Down", "Enter")
        self.assertEqual(self.run_js("return report.profile.nameOf(report.selection.span)"), "sharpen")

    def test_panels_tell_shares_memory_and_submission(self):
        self.open("pipeline", lambda: pipeline(200))
        self.run_js("document.getElementById('tab-engines').click()")
        self.assertIn("The busiest engine is host:0 kernel, with", self.text("panel-engines"))
        self.run_js("document.getElementById('tab-memory').click()")
        self.assertIn("16.0 KiB of device memory and 4.00 KiB of pinned memory", self.text("panel-memory"))
        self.run_js("document.getElementById('tab-submission').click()")
        self.assertIn("1 launch as graphs, in 4 slots.", self.text("panel-submission"))
        self.run_js("document.getElementById('tab-nodes').click()")
        names = "return [...document.querySelectorAll('#panel-nodes tbody tr')].map(row => row.cells[0].innerText)"
        self.assertEqual(self.run_js(names)[0], "blur")
        self.press_in("panel-nodes", "Name")
        self.assertEqual(self.run_js(names), sorted(self.run_js(names)))
        self.assertEqual(self.run_js("return document.querySelector('#panel-nodes th').ariaSort"), "ascending")
        self.run_js("document.querySelector('#panel-nodes tbody button').click()")
        self.assertEqual(self.selected(), self.span("blur", 0))

    def test_pipelines_tell_their_stages_and_the_bottleneck(self):
        def made():
            profile = pipeline(10)
            profile.pipeline([("decode", 2, 0.25), ("work on host:0", 3, 0.875)], 1, accepted=12, failed=3, window=8)
            return profile

        self.open("pipelines", made)
        self.run_js("document.getElementById('tab-pipelines').click()")
        text = self.text("panel-pipelines")
        self.assertIn("12 items in", text)
        self.assertIn("at most 8 at a time, 3 failed.", text)
        self.assertIn("The busiest stage is work on host:0, with 87.5 % of its capacity in use.", text)
        rows = self.run_js("""return [...document.querySelectorAll('#panel-pipelines tbody tr')].map(
            row => [...row.cells].map(cell => cell.innerText.trim()))""")
        self.assertEqual(rows, [["decode", "2", "25.0 %", "7", "0", "0"],
                                ["work on host:0 (bottleneck)", "3", "87.5 %", "7", "0", "0"]])

    def test_iterations_of_a_loop_do_not_count_as_its_node(self):
        def loop():
            made = ProfileBuilder()
            executable = made.graph("solver", ["compute"], [("solve", "conditional", 0, (), 0)])
            made.span("kernel", 0, 100, "solve", "host:0 slot 0 compute lane 0", executable, 0, 0, 0, 0)
            for at in range(4):
                made.span("kernel", 25 * at, 25 * at + 25, f"solve iteration {at}", "host:0 slot 0 compute lane 0",
                          executable, 0, 0, 0, 0)
            return made
        self.open("loop", loop)
        rows = self.run_js("""return [...document.querySelectorAll('#panel-nodes tbody tr')]
            .map(row => [0, 4, 5, 8].map(at => row.cells[at].innerText))""")
        self.assertEqual(rows, [["solve", "1", "100 \u00b5s", "100.0 %"], ["solve iteration", "4", "100 \u00b5s", ""]])

    def test_findings_lead_into_the_timeline(self):
        markup = HOSTILE["markup"]
        self.open("findings", lambda: pipeline(20), [
            {"rule": "no overlap " + markup, "share": 0.25, "gain": 0.1, "gain_how": "counted " + markup,
             "graph": 0, "graph_name": "photos", "node": 2, "node_name": markup,
             "where": "app.cc:12", "evidence": ["kernels wait " + markup], "fix": "Use more slots" + markup,
             "begin_us": 400, "end_us": 600, "span": 9}])
        self.assertEqual(self.text("tab-findings"), "Findings (1)")
        findings = self.text("panel-findings")
        for words in ("no overlap " + markup, "25.0 % of the time, expected gain 10.0 %", "counted " + markup,
                      "kernels wait " + markup,
                      "Fix: Use more slots" + markup, "app.cc:12"):
            self.assertIn(words, findings)
        self.press_in("panel-findings", "Select the span")
        self.assertEqual(self.selected(), 9)
        self.press_in("panel-findings", "Show in the timeline")
        self.assertEqual(self.shown(), [380, 620])
        self.press_in("panel-findings", "In the graph")
        self.assertEqual(self.run_js("return report.planView().node"), 2)

    # --- sizes and themes -------------------------------------------------------------------------------------------

    def test_a_profile_without_spans_says_so(self):
        self.open("empty", ProfileBuilder)
        self.assertIn("No spans are recorded.", self.text("panel-nodes"))
        self.assertEqual(self.shown(), [-1, 101])
        self.run_js("document.getElementById('tab-graph').click()")
        self.assertIn("No graph is recorded.", self.text("panel-graph"))
        for tab in ("findings", "engines", "pipelines", "memory", "submission"):
            self.run_js("document.getElementById('tab-' + arguments[0]).click()", tab)
        self.browser.press("+", "Down", "Enter", "]", "0")

    def test_a_hundred_thousand_spans_are_drawn_without_an_element_each(self):
        self.open("large", lambda: pipeline(14400))
        self.assertEqual(self.run_js("return report.profile.size"), 100800)
        self.assertLess(self.run_js("return document.querySelectorAll('*').length"), 1000)
        # Spans are far narrower than a pixel, and still there.
        x, y = self.point(self.span("blur", 7000))
        red, green, blue, _ = self.colour("timeline", x, y)
        self.assertTrue(green > red and green > blue, (red, green, blue))
        self.run_js("report.selection.set(arguments[0], true)", self.span("blur", 7000))
        self.browser.frame()
        self.run_js("report.selection.set(-1)")
        x, y = self.point(self.span("blur", 7000))
        self.browser.click(x, y)
        self.assertEqual(self.selected(), self.span("blur", 7000))

    def test_themes_narrow_windows_and_print(self):
        self.open("pipeline", lambda: pipeline(200))
        back = "return getComputedStyle(document.body).backgroundColor"
        self.assertEqual(self.run_js(back), "rgb(255, 255, 255)")
        self.addCleanup(self.browser.look, 1600, 1000)
        self.browser.look(700, 1000, dark=True)
        self.browser.frame()
        self.assertEqual(self.run_js(back), "rgb(20, 23, 27)")
        self.assertEqual(self.colour("timeline", 690 - 40, 120 + 60)[3], 255)
        self.assertLessEqual(self.run_js("return document.documentElement.scrollWidth"), 700)
        self.run_js("dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(self.run_js(back), "rgb(255, 255, 255)")
        self.assertEqual(self.run_js("""return [...document.querySelectorAll('#panels > div')]
            .filter(panel => panel.checkVisibility()).length"""), 7)
        for panel, words in (("nodes", "sharpen"), ("engines", "The busiest engine"), ("memory", "pinned memory"),
                             ("submission", "as graphs")):
            self.assertIn(words, self.text("panel-" + panel))
        self.run_js("dispatchEvent(new Event('afterprint'))")
        self.assertEqual(self.run_js(back), "rgb(20, 23, 27)")


if __name__ == "__main__":
    if browser.missing():
        print(f"skipped: there is no {' and no '.join(browser.missing())}; "
              "the Debian packages are chromium and chromium-driver")
        sys.exit(0)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
