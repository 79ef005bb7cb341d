#!/usr/bin/env python3
"""Checks that links lead somewhere. Each fault is printed as file:line: what.

  scripts/check_links.py [ROOT]          Markdown files of the project at ROOT (default: this one): relative links with
                                         their anchors, and paths of the project in back quotes (globs are allowed)
  scripts/check_links.py --site FOLDER   HTML files in FOLDER: links, images and anchors
"""
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

TOPS = ("src", "graph", "include", "tests", "scripts", "bench", "examples", "docs", "cmake")
PATH = re.compile(r"(?:%s)/[\w./*?{},+-]*" % "|".join(TOPS))
LINK = re.compile(r"\]\(\s*<?([^()\s<>]+(?:\([^()\s]*\)[^()\s<>]*)?)>?(?:\s+[\"'][^)]*[\"'])?\s*\)")
DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:\s+<?([^\s>]+)")
ATTRIBUTE = re.compile(r"<(?:a|img)\b[^>]*?\b(?:href|src)=\"([^\"]+)\"")
CODE = re.compile(r"(?<!`)(`+)(?!`)((?:.|\n(?!\s*\n))+?)(?<!`)\1(?!`)")  # within a paragraph


def slug(heading, separator="-"):
    """The anchor that GitHub gives to a heading; docs_site.py uses it too."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def prose(text):
    """The text with fenced blocks made empty lines."""
    fence, lines = None, []
    for line in text.splitlines():
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        lines.append("" if fence or mark else line)
        if fence is None and mark:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = None
    return "\n".join(lines)


def markdown_anchors(path):
    anchors, seen = set(), {}
    for line in prose(path.read_text(encoding="utf-8")).splitlines():
        anchors.update(re.findall(r"<a\s+(?:id|name)=\"([^\"]+)\"", line))
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            name = slug(heading[1])
            anchors.add(name if name not in seen else f"{name}-{seen[name]}")
            seen[name] = seen.get(name, 0) + 1
    return anchors


def is_relative(target):
    return not urlsplit(target).scheme and not target.startswith("//")


def alternatives(pattern):
    """a.{h,cc} as a.h and a.cc."""
    braces = re.search(r"\{([^{}]*)\}", pattern)
    if not braces:
        return [pattern]
    return [whole for part in braces[1].split(",")
            for whole in alternatives(pattern[:braces.start()] + part + pattern[braces.end():])]


def exists(root, pattern):
    for one in alternatives(pattern):
        if re.search(r"[*?]", one):
            if next(root.glob(one), None) is None:
                return False
        elif not (root / one).exists() or (one.endswith("/") and not (root / one).is_dir()):
            return False
    return True


class Tree:
    """The files of one check, and the anchors of those that have been asked for."""

    def __init__(self, root, anchors_of):
        self.root, self.anchors_of, self.anchors, self.faults = root, anchors_of, {}, 0

    def fault(self, path, number, what):
        print(f"{path.relative_to(self.root)}:{number}: {what}")
        self.faults += 1

    def check_link(self, path, number, target):
        url = urlsplit(target)
        if not is_relative(target):
            return
        to = (path.parent / unquote(url.path)).resolve() if url.path else path
        if url.path.startswith("/"):
            self.fault(path, number, f"link to '{target}' begins at the root of the server; make it relative")
        elif not to.is_relative_to(self.root):
            self.fault(path, number, f"link to '{target}' leaves the tree")
        elif not to.exists():
            self.fault(path, number, f"link to '{target}': there is no such file")
        elif url.fragment and to.suffix in (".md", ".html"):
            if to not in self.anchors:
                self.anchors[to] = self.anchors_of(to)
            if unquote(url.fragment) not in self.anchors[to]:
                self.fault(path, number, f"link to '{target}': there is no such heading or anchor")


def check_markdown(root):
    tree = Tree(root, markdown_anchors)
    files = sorted(root.glob("*.md")) + [file for top in TOPS for file in sorted((root / top).rglob("*.md"))]
    for path in files:
        text = prose(path.read_text(encoding="utf-8"))
        for code in CODE.finditer(text):
            for word in code[2].split():
                word = re.sub(r":\d+$", "", word.strip(",;:()'\""))
                if PATH.fullmatch(word) and not exists(root, word):
                    tree.fault(path, text.count("\n", 0, code.start()) + 1, f"`{word}`: there is no such path")
        text = CODE.sub(lambda code: "\n" * code[0].count("\n"), text)
        for number, line in enumerate(text.splitlines(), 1):
            for target in LINK.findall(line) + DEFINITION.findall(line) + ATTRIBUTE.findall(line):
                tree.check_link(path, number, target)
    print(f"{len(files)} Markdown files: " + (f"{tree.faults} broken" if tree.faults else "links and paths hold"))
    return 1 if tree.faults else 0


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.anchors, self.links = set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors.update(filter(None, (attrs.get("id"), attrs.get("name"))))
        target = attrs.get("href") or attrs.get("src")
        if target:
            self.links.append((self.getpos()[0], target))


def check_site(root):
    pages = {path: Page(path) for path in sorted(root.rglob("*.html"))}
    tree = Tree(root, lambda path: pages[path].anchors)
    for path, page in pages.items():
        for number, target in page.links:
            tree.check_link(path, number, target)
    print(f"{len(pages)} pages: " + (f"{tree.faults} broken links" if tree.faults else "links hold"))
    return 1 if tree.faults else 0


def main(arguments):
    if arguments[:1] == ["--site"] and len(arguments) == 2:
        return check_site(Path(arguments[1]).resolve())
    if len(arguments) <= 1 and not arguments[:1] == ["--site"]:
        return check_markdown(Path(arguments[0] if arguments else Path(__file__).parent / "..").resolve())
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
