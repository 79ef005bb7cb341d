#!/usr/bin/env python3
"""Checks that the pages of the tutorial, the cookbook and the examples show what their programs are and print.

  scripts/check_snippets.py [ROOT]               every ```cpp block of docs/tutorial/N-*.md stands, line by line, in one
                                                 of the files examples/tutorial/N_*, and every one of
                                                 docs/howto/cookbook/NAME.md in one of examples/cookbook/NAME*, and every
                                                 one of examples/NAME/README.md in one of examples/NAME/*.cc, and every
                                                 one of another page examples/NAME/PAGE.md in one of
                                                 examples/NAME/PAGE*.cc; how far it is indented is free
  scripts/check_snippets.py --run PAGE PROGRAM [ARGUMENT...]
                                                 PROGRAM succeeds, and prints what the ```text block of PAGE shows; where
                                                 the block is opened by ```text numbers vary, numbers may differ, and
                                                 so may the spaces before them
"""
import re
import subprocess
import sys
import textwrap
from pathlib import Path


def blocks(page, language):
    """(number of the first line, text, the rest of the opening line) of each block in that language."""
    found, begin = [], None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if begin is None and line.startswith("```"):
            name, _, rest = line[3:].partition(" ")
            begin, lines = (number + 1, name, rest), []
        elif line.startswith("```"):
            if begin[1] == language:
                found.append((begin[0], "\n".join(lines), begin[2]))
            begin = None
        elif begin is not None:
            lines.append(line)
    return found


def stands_in(block, source):
    """Whether the lines of the block follow each other in the source, all indented by as much more or less."""
    wanted, lines = textwrap.dedent(block), source.splitlines()
    count = wanted.count("\n") + 1
    return any(textwrap.dedent("\n".join(lines[at:at + count])) == wanted for at in range(len(lines) - count + 1))


def pages_of(root):
    """Each page whose code is checked, with the files that it shows."""
    for page in sorted((root / "docs/tutorial").glob("[0-9]*-*.md")):
        chapter = page.name.split("-")[0]
        yield page, sorted((root / "examples/tutorial").glob(f"{chapter}_*"))
    for page in sorted((root / "docs/howto/cookbook").glob("*.md")):
        if page.stem != "README":
            yield page, sorted((root / "examples/cookbook").glob(f"{page.stem}*"))
    for page in sorted((root / "examples").glob("*/*.md")):
        if blocks(page, "cpp"):
            yield page, sorted(page.parent.glob("*.cc" if page.stem == "README" else f"{page.stem}*.cc"))


def check_pages(root):
    faults = count = 0
    pages = list(pages_of(root))
    for page, sources in pages:
        texts = [source.read_text(encoding="utf-8") for source in sources]
        shown = blocks(page, "cpp")
        count += len(shown)
        wrong = [(number, "these lines are not in " + (" or ".join(source.name for source in sources) or "any program"))
                 for number, block, _ in shown if not any(stands_in(block, text) for text in texts)]
        if not shown:
            wrong.append((1, "the page shows no code"))
        for number, what in wrong:
            print(f"{page.relative_to(root)}:{number}: {what}")
            faults += 1
    outcome = f"{faults} broken snippets" if faults else f"{count} snippets hold"
    print(f"{len(pages)} pages of the tutorial, the cookbook and the examples: {outcome}")
    return 1 if faults else 0


def check_run(page, command):
    program = " ".join(command)
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        print(f"{program} ended with {ran.returncode}\n{ran.stdout}{ran.stderr}")
        return 1
    shown = blocks(page, "text")
    if len(shown) != 1:
        print(f"{page.name} has {len(shown)} blocks of output; it is to have one")
        return 1
    _, wanted, rest = shown[0]
    seen = ran.stdout.rstrip("\n")
    numbers = re.compile(r" *\d+(\.\d+)?")
    if rest == "numbers vary":
        same = numbers.sub("0", wanted) == numbers.sub("0", seen)
    else:
        same = wanted == seen
    if not same:
        print(f"{page.name} shows\n{wanted}\nbut {program} prints\n{seen}")
    return 0 if same else 1


def main(arguments):
    if arguments[:1] == ["--run"] and len(arguments) >= 3:
        return check_run(Path(arguments[1]), arguments[2:])
    if len(arguments) <= 1 and arguments[:1] != ["--run"]:
        return check_pages(Path(arguments[0] if arguments else Path(__file__).parent / "..").resolve())
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
