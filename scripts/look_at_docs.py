#!/usr/bin/env python3
"""Loads pages of the site in headless Chromium and looks whether they show: text, pictures, and nothing too wide.

  scripts/look_at_docs.py SITE PICTURES     SITE: the folder of the site; PICTURES: where screenshots go
"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Pages by a pattern, of which the first match is looked at, and the text that must stand there.
PAGES = [("index.html", "Penstock is a C++20 library"),
         ("docs/tutorial/1-saxpy.html", "ParallelFor"),
         ("docs/explanation/overview.html|docs/architecture.html|docs/*.html", "Plan"),
         ("reference/graph_8h.html", "Compile"),
         ("reference/classpenstock_1_1Graph.html", "ParallelFor")]
SIZES = [("wide", "1280,1600"), ("narrow", "500,1200")]

# Put at the end of a copy of the page: what a reader would see, as JSON in an attribute.
PROBE = """<script>addEventListener("load", () => {
  const page = document.documentElement, main = document.querySelector("main").getBoundingClientRect();
  const text = document.querySelector("main").innerText;
  page.dataset.seen = JSON.stringify({width: main.width, height: main.height, wide: page.scrollWidth - page.clientWidth,
    bar: getComputedStyle(document.querySelector(".bar")).position, images: [...document.images].filter(
      image => image.checkVisibility() && image.naturalWidth === 0).map(image => image.getAttribute("src")),
    length: text.length, has: text.includes(TEXT)});
});</script>"""


def chromium(*options):
    with tempfile.TemporaryDirectory() as profile:
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                   f"--user-data-dir={profile}", *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout


def look(page, text, size):
    """What is wrong with a page in a window of that size."""
    probe = page.with_name(f".look_{page.name}")
    asking = PROBE.replace("TEXT", json.dumps(text)) + "</body>"
    probe.write_text(page.read_text(encoding="utf-8").replace("</body>", asking), encoding="utf-8")
    try:
        dom = chromium(f"--window-size={size}", "--virtual-time-budget=2000", "--dump-dom", probe.as_uri())
    finally:
        probe.unlink()
    found = re.search(r'data-seen="([^"]*)"', dom)
    if not found:
        return ["the page was not loaded to its end"]
    seen = json.loads(found[1].replace("&quot;", '"').replace("&amp;", "&"))
    faults = [f"picture {source} does not show" for source in seen["images"]]
    if not seen["has"]:
        faults.append(f"'{text}' is not there")
    if seen["width"] < 300 or seen["height"] < 300 or seen["length"] < 200:
        faults.append(f"the text takes {seen['width']:.0f} x {seen['height']:.0f} pixels, {seen['length']} letters")
    if seen["wide"] > 0:
        faults.append(f"{seen['wide']} pixels too wide")
    if seen["bar"] != "sticky":
        faults.append("the style sheet does not apply")
    return faults


def main(site, pictures):
    failed, count = False, 0
    pictures.mkdir(parents=True, exist_ok=True)
    for patterns, text in PAGES:
        page = next((page for pattern in patterns.split("|") for page in sorted(site.glob(pattern))), None)
        if page is None:
            print(f"{patterns}: there is no such page")
            failed = True
            continue
        for name, size in SIZES:
            for fault in look(page, text, size):
                print(f"{page.relative_to(site)}, {name}: {fault}")
                failed = True
            chromium(f"--window-size={size}", f"--screenshot={pictures / f'{page.stem}_{name}.png'}", page.as_uri())
            count += 1
    print(f"{count} views" + (" looked at: faults" if failed else f" are as they should be; screenshots in {pictures}"))
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve(), Path(sys.argv[2])))
