#!/usr/bin/env python3
"""Renders the project's Markdown pages to a site, with the header and footer that Doxygen gives its pages there.

  scripts/docs_site.py ROOT SITE       ROOT: the project; SITE: the folder to make

README.md, CHANGELOG.md, CONTRIBUTING.md and what is under docs/ become pages; README.md of a folder is its index.html.
Links to other files lead to a copy of the file in SITE/source, those to public headers to the reference. The header and
the footer are left beside SITE, as reference_header.html and reference_footer.html.
"""
import html
import os
import re
import shutil
import sys
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

from check_links import is_relative, slug

# The groups of the navigation: title, and the folder or page of docs/ that each is. What else there is goes under More.
GROUPS = [("Tutorial", "tutorial"), ("How-to guides", "howto"), ("Explanation", "explanation"), ("Reference", None),
          ("Guarantees", "guarantees"), ("Performance", "performance"), ("Decisions", "adr"), ("Glossary", "glossary")]
LANGUAGES = {"sh": "bash", "cuda": "cpp", "cu": "cpp", "c++": "cpp"}
IMAGES = {".svg", ".png", ".jpg", ".jpeg", ".gif", ".webp"}

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
{head}<link rel="stylesheet" href="{top}style.css">
</head>
<body>
<header class="bar"><a class="brand" href="{top}index.html">Penstock</a>
<a href="{top}index.html">Guide</a> <a href="{top}reference/index.html">Reference</a></header>
<div class="columns">
<nav class="side"><details class="menu" open><summary>Pages</summary>
{navigation}
</details></nav>
<script>if (matchMedia("(max-width: 60rem)").matches) document.querySelector(".menu").open = false;</script>
<main{main}>
{body}
"""
FOOT = "</main>\n</div>\n</body>\n</html>\n"
REFERENCE_HEAD = """<script src="$relpath^jquery.js"></script>
<script src="$relpath^dynsections.js"></script>
$treeview
$search
$extrastylesheet
"""


def code_block(text, language):
    try:
        return highlight(text, get_lexer_by_name(LANGUAGES.get(language, language)), HtmlFormatter(nowrap=True))
    except ClassNotFound:
        return html.escape(text)


def text_of(inline):
    """The text of a heading or link, without markup."""
    return "".join(child.content for child in inline.children or [] if child.type in ("text", "code_inline"))


class Site:
    def __init__(self, root, out):
        self.root, self.out = root, out
        options = {"html": True, "highlight": lambda code, language, _: code_block(code, language)}
        self.markdown = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
        self.files = sorted(self.files_of(root))
        self.tokens = {file: self.markdown.parse((root / file).read_text(encoding="utf-8")) for file in self.files
                       if file.endswith(".md") and (file.startswith("docs/") or "/" not in file)}
        self.sources = set()

    def files_of(self, root):
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if not name.startswith(".") and name != "build"]
            yield from (os.path.relpath(os.path.join(folder, name), root) for name in names)

    # --- where things are --------------------------------------------------------------------------------------------

    def page_of(self, file):
        path = PurePosixPath(file)
        return str(path.with_name("index.html") if path.name == "README.md" else path.with_suffix(".html"))

    def target_of(self, path):
        """What a link to a file or folder of the project leads to, from the top of the site."""
        if path in self.tokens:
            return self.page_of(path)
        if f"{path}/README.md" in self.tokens:
            return self.page_of(f"{path}/README.md")
        header = re.fullmatch(r"include/penstock/(\w+)\.h", path)
        if header and header[1] != "export":
            return f"reference/{header[1].replace('_', '__')}_8h.html"
        if path.startswith("docs/") and PurePosixPath(path).suffix in IMAGES:
            return path
        self.sources.add(path)
        return self.source_of(path)

    def source_of(self, path):
        if (self.root / path).is_dir():
            return f"source/{path}/index.html"
        return f"source/{path}" + ("" if PurePosixPath(path).suffix in IMAGES else ".html")

    def rewrite(self, file, url):
        """A link of a page, as it is to be in the site. Broken ones stay: check_links.py finds them."""
        parts = urlsplit(url)
        if not is_relative(url) or not parts.path:
            return url
        path = os.path.normpath(os.path.join(os.path.dirname(file), unquote(parts.path)))
        if path.startswith("..") or not (self.root / path).exists():
            return url
        target = "index.html" if path == "." else self.target_of(path)
        relative = os.path.relpath(target, os.path.dirname(self.page_of(file)) or ".")
        return relative + (f"#{parts.fragment}" if parts.fragment and not target.startswith("reference/") else "")

    # --- pages -------------------------------------------------------------------------------------------------------

    def title_of(self, file):
        for at, token in enumerate(self.tokens[file]):
            if token.type == "heading_open" and token.tag == "h1":
                return text_of(self.tokens[file][at + 1])
        return PurePosixPath(file).stem

    def render(self, file):
        """The page's HTML, with anchors at its headings, links rewritten and a list of its parts."""
        tokens, seen, parts = self.tokens[file], {}, []
        for at, token in enumerate(tokens):
            if token.type == "heading_open":
                name = slug(text_of(tokens[at + 1]))
                anchor = name if name not in seen else f"{name}-{seen[name]}"
                seen[name] = seen.get(name, 0) + 1
                token.attrSet("id", anchor)
                if token.tag == "h2":
                    parts.append((anchor, text_of(tokens[at + 1])))
            for child in [token, *(token.children or [])]:
                for attribute in {"link_open": ["href"], "image": ["src"]}.get(child.type, []):
                    child.attrSet(attribute, self.rewrite(file, child.attrGet(attribute)))
                if child.type in ("html_inline", "html_block"):
                    child.content = re.sub(r"((?:href|src)=\")([^\"]+)", lambda m: m[1] + self.rewrite(file, m[2]),
                                           child.content)
        body = self.markdown.renderer.render(tokens, self.markdown.options, {})
        body = re.sub(r"<table>.*?</table>", r'<div class="wide">\g<0></div>', body, flags=re.S)
        if len(parts) >= 4:
            links = "".join(f'<li><a href="#{anchor}">{html.escape(text)}</a></li>' for anchor, text in parts)
            contents = f'</h1>\n<details class="contents"><summary>On this page</summary><ul>{links}</ul></details>'
            body = body.replace("</h1>", contents, 1)
        return body

    def members_of(self, name):
        """The pages of a group: those that its first page links to in that order, then the others."""
        own = [file for file in self.tokens if file == f"docs/{name}.md" or file.startswith(f"docs/{name}/")]
        first = [file for file in own if re.fullmatch(rf"docs/{name}(\.md|/README\.md|/overview\.md)", file)]
        order = []
        for file in first:
            links = [child.attrGet("href") for token in self.tokens[file] for child in token.children or []
                     if child.type == "link_open"]
            order += [os.path.normpath(os.path.join(os.path.dirname(file), urlsplit(link).path)) for link in links]
        others = [file for file in own if file not in first]
        return first + sorted(others, key=lambda file: (order.index(file) if file in order else len(order), file))

    def plan_navigation(self):
        groups = [(title, self.members_of(name) if name else ["reference"]) for title, name in GROUPS]
        placed = {file for _, files in groups for file in files}
        groups.append(("More", [file for file in self.tokens if file not in placed and file != "README.md"]))
        self.groups = [(title, files) for title, files in groups if files]
        self.titles = {file: self.title_of(file) for file in self.tokens}
        self.titles["reference"] = "Reference"

    def navigation(self, current, top):
        """The list of all pages, with `top` leading to the top of the site; the group of the current page is open."""
        def link(file, title):
            page = "reference/index.html" if file == "reference" else self.page_of(file)
            mark = ' class="current" aria-current="page"' if file == current else ""
            return f'<a href="{top}{page}"{mark}>{html.escape(title)}</a>'

        lines = [link("README.md", "Overview")] if "README.md" in self.tokens else []
        for title, files in self.groups:
            if len(files) == 1 and title != "More":
                lines.append(link(files[0], title))
                continue
            links = "".join(f"<li>{link(file, self.titles[file])}</li>" for file in files)
            is_open = " open" if current in files or title in ("Tutorial", "How-to guides", "Explanation") else ""
            lines.append(f"<details{is_open}><summary>{title}</summary><ul>{links}</ul></details>")
        return "\n".join(lines)

    def write(self, page, title, body, current=None):
        path = self.out / page
        path.parent.mkdir(parents=True, exist_ok=True)
        top = "../" * page.count("/")
        path.write_text(PAGE.format(title=html.escape(title), head="", top=top, main="", body=body,
                                    navigation=self.navigation(current, top)) + FOOT, encoding="utf-8")

    def write_source(self, path):
        """A file of the project with its lines as anchors, or a folder with what is in it."""
        page, name = self.source_of(path), html.escape(path)
        if (self.root / path).is_dir():
            inside = [file for file in self.files if file.startswith(f"{path}/")]
            links = "".join(f'<li><a href="{os.path.relpath(self.source_of(file), os.path.dirname(page))}">'
                            f"{html.escape(file)}</a></li>" for file in inside)
            self.write(page, path, f"<h1><code>{name}/</code></h1>\n<ul>{links}</ul>")
            return inside
        if PurePosixPath(path).suffix in IMAGES:
            (self.out / page).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / path, self.out / page)
            return []
        text = (self.root / path).read_text(encoding="utf-8", errors="replace")
        try:
            lexer = get_lexer_by_name("cpp") if path.endswith((".cu", ".cuh")) else get_lexer_for_filename(path)
            lines = highlight(text, lexer, HtmlFormatter(nowrap=True)).splitlines()
        except ClassNotFound:
            lines = html.escape(text).splitlines()
        code = "\n".join(f'<span id="L{at}">{line}</span>' for at, line in enumerate(lines, 1))
        self.write(page, path, f'<h1><code>{name}</code></h1>\n<pre class="source"><code>{code}</code></pre>')
        return []

    def build(self):
        self.plan_navigation()
        for file in self.tokens:
            self.write(self.page_of(file), f"{self.titles[file]} - Penstock", self.render(file), file)
        written = set()
        while self.sources - written:
            for path in sorted(self.sources - written):
                written.add(path)
                self.sources.update(self.write_source(path))
        for file in self.files:
            if file.startswith("docs/") and PurePosixPath(file).suffix in IMAGES:
                (self.out / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.root / file, self.out / file)
        shutil.copyfile(self.root / "docs/site/style.css", self.out / "style.css")
        top = "$relpath^../"
        header = PAGE.format(title="$title - Penstock", head=REFERENCE_HEAD, top=top, main=' class="doxygen"',
                             body='<div id="top">', navigation=self.navigation("reference", top))
        (self.out.parent / "reference_header.html").write_text(header, encoding="utf-8")
        (self.out.parent / "reference_footer.html").write_text(FOOT, encoding="utf-8")
        print(f"{len(self.tokens)} pages, {len(written)} sources that they link to")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    Site(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()).build()
