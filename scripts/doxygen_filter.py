#!/usr/bin/env python3
"""Turns a header's plain comments into Doxygen's, as its INPUT_FILTER: prints the header, line for line.

  scripts/doxygen_filter.py HEADER

- The comment that opens the file documents the file, and the class that it names ("Run: ...") or that the file is
  named after.
- A comment in front of a declaration, or behind it on its line, documents it. One in front of several declarations
  without a blank line between them documents the overloads among them and those of the same type, which repeat it. One
  in front of an inline namespace documents what begins it.
- What explains itself needs no comment: names that the standard library gives a meaning (data, begin), and the members
  of a small struct that has one comment for all of it.
- Left out is what is not for users: private and protected members, namespaces detail and runtime, all but a few types
  of headers in detail/, forward declarations, branches that #if takes under nvcc, macros that serve other macros; and,
  where they have no comment of their own, special members, comparisons, value_type, deleted functions, and twins of
  functions for temporaries.
"""
import re
import sys
from pathlib import Path

SCOPE = re.compile(r"(inline namespace|namespace|class|struct|enum)\b(?: (?:class|struct|PENSTOCK_EXPORT))* ?([\w:]*)")
SPECIAL = r"(?:explicit |constexpr )*~?{0}\((?:const {0} ?&+.*|{0} ?&&.*)?\)( noexcept)?( : .*| = default)?[;{{}} ]*"
NOT_FOR_USERS = re.compile(r"#define (PENSTOCK_CONCAT|\w+_(IMPL|INNER)\b)|(friend )?(class|struct) [\w:]+;")
FOR_TEMPORARIES = re.compile(r"\)( const)? ?&&( = delete;| \{\})|= delete;")
UNMENTIONED = re.compile(r".*\boperator(=|==|!=|<=>)\(|using value_type\b")
OF_DETAIL = {"Where", "KernelShape"}  # what users say, though it stands in a header of detail/
SELF_EXPLAINED = re.compile(r"data|size|begin|end|name|await_\w+|operator(\[\]|->| .*)")
VARIABLES = re.compile(r"(?P<type>(?:(?:PENSTOCK_HIDDEN|static|inline|constexpr|const) )*[\w:]+(?:<[^;]*?>)? )"
                       r"(?P<first>\w+[^,(]*), (?P<rest>[^(]*;)")
LABEL = re.compile(r" ([A-Z][a-z]+(?: [a-z]+)?):\s+(.*)")


class Declaration:
    def __init__(self, scope, line, column):
        self.scope, self.first, self.last, self.head_end, self.column = scope, line, line, None, column
        self.text = ""  # without comments, and with {} for what stands in braces
        self.lead, self.behind, self.inherited = [], "", None
        self.is_scope = self.is_variable = self.explained = False
        self.visible = True
        self.kind = self.name = ""  # of a scope: what it is; of others: the type

    def name_it(self):
        text = re.sub(r"\s+", " ", self.text).strip()
        while text.startswith("template"):
            at = depth = 0
            for at, letter in enumerate(text):
                depth += (letter == "<") - (letter == ">" and text[at - 1] != "-")
                if letter == ">" and depth == 0:
                    break
            text = text[at + 1:].strip()
        text = re.sub(r"^requires (requires\(.*?\) \{\}|[\w:]+(<[^<>]*>)?) ?", "", text)
        self.text = re.sub(r"\b(PENSTOCK_(EXPORT|HIDDEN|HOST_DEVICE)|static|inline|constexpr) ", "", text)
        head = SCOPE.match(text)
        if head:
            self.kind, self.name = head[1], head[2]
            return
        bare = self.text
        while re.search(r"<[^<>]*>", bare) and "operator<" not in bare:
            bare = re.sub(r"<[^<>]*>", "", bare)
        function = re.match(r"(?P<type>.*?)(?P<name>operator.+?|[\w:~]+) ?\(", bare)
        macro = re.match(r"#(?P<type>define) (?P<name>\w+)", bare)
        variable = re.match(r"(?P<type>.*?)(?P<name>\w+)(\[\w*\])* ?(=.*|\{\}.*|,.*)?;", bare)
        found = macro or function or variable or re.match(r"(?P<type>)(?P<name>.*)", bare)
        self.is_variable = found is variable
        self.kind, self.name = found["type"].strip(), found["name"]


def split_comment(line):
    """The code of a line, and the comment behind it or None."""
    quote, at = None, 0
    while at < len(line):
        if quote:
            at += line[at] == "\\"
            quote = None if line[at:at + 1] == quote else quote
        elif line[at] in "\"'" and not (line[at] == "'" and line[at - 1:at].isalnum()):
            quote = line[at]
        elif line.startswith("//", at):
            return line[:at], line[at + 2:]
        at += 1
    return line, None


def without_branches(lines):
    """Drops the branches that are not taken outside nvcc, and the directives that part them; None: dropped."""
    kept, taken = [], []
    for line in lines:
        directive = re.match(r"#(ifndef|if|else|endif)", line)
        if directive and directive[1] == "endif":
            taken.pop()
        elif directive and directive[1] == "else":
            taken[-1] = not taken[-1]
        elif directive:
            taken.append(directive[1] == "ifndef")
        kept.append(None if directive or not all(taken) else line)
    return kept


class Header:
    def __init__(self, lines, in_detail):
        self.lines, self.in_detail = without_branches(lines), in_detail
        self.code = [split_comment(line or "") for line in self.lines]
        self.declarations = []
        self.parse()

    def parse(self):
        top = Declaration(None, 0, 0)
        top.is_scope, top.kind, top.public = True, "namespace", True
        stack, now, parens, in_macro = [top], None, 0, False
        for number, (code, _) in enumerate(self.code):
            if code.startswith("#") or in_macro:
                if code.startswith("#define"):
                    now = Declaration(stack[-1], number, 0)
                    now.text, now.head_end = code.rstrip("\\ "), number
                in_macro = code.endswith("\\")
                if now is not None and not in_macro:
                    self.end(now, number)
                    now = None
                continue
            for at, letter in enumerate(code):
                scope = stack[-1]
                if isinstance(scope, str):  # inside a body or an initializer
                    if letter == "{":
                        stack.append("body")
                    elif letter == "}":
                        stack.pop()
                        rest = code[at + 1:].strip()
                        if not isinstance(stack[-1], str):
                            now.text += "}"
                            requires = re.search(r"requires requires\([^()]*\) \{\}$", now.text)
                            if parens == 0 and not requires and (not rest or rest[0] not in ";,{)"):
                                self.end(now, number)
                                now = None
                    continue
                if now is None:
                    if letter.isspace() or letter == ";" or (letter == "," and scope.kind == "enum"):
                        continue
                    if letter == "}":
                        stack.pop()
                        scope.last = number
                        continue
                    now = Declaration(scope, number, at)
                parens += (letter == "(") - (letter == ")")
                if letter == "}" and scope.kind == "enum":
                    self.end(now, number)
                    now = stack.pop()
                    now.last, now = number, None
                elif letter == "{" and parens == 0:
                    now.head_end = now.head_end or number
                    now.text += "{"
                    now.name_it()
                    if SCOPE.match(now.text) and "(" not in now.text:
                        now.is_scope, now.public = True, now.kind != "class"
                        self.end(now, number, named=True)
                        stack.append(now)
                        now = None
                    else:
                        stack.append("body")
                elif letter == "{":
                    stack.append("body")
                elif (letter == ";" or (letter == "," and scope.kind == "enum")) and parens == 0:
                    now.text += ";"
                    self.end(now, number)
                    now = None
                elif letter == ":" and now.text in ("public", "protected", "private"):
                    scope.public = now.text == "public"
                    now = None
                else:
                    now.text += letter
            if now is not None and not isinstance(stack[-1], str):
                now.text += " "

    def end(self, declaration, number, named=False):
        declaration.last = number
        declaration.head_end = declaration.head_end if declaration.head_end is not None else number
        declaration.visible = declaration.scope.visible and declaration.scope.public
        if not named:
            declaration.name_it()
        if declaration.kind == "namespace" and declaration.name in ("detail", "runtime"):
            declaration.visible = False
        if self.in_detail and declaration.scope.kind == "namespace" and declaration.kind != "namespace":
            declaration.visible = declaration.name in OF_DETAIL
        self.declarations.append(declaration)

    def is_comment(self, number):
        return self.lines[number] is not None and not self.code[number][0].strip() and self.code[number][1] is not None

    def attach(self, first):
        """Gives each declaration behind line `first` the comments that belong to it."""
        before = {}  # scope: the declaration before
        for one in self.declarations:
            at = one.first - 1
            while at >= first and self.lines[at] is None:
                at -= 1
            end = at
            while at >= first and self.is_comment(at):
                at -= 1
            one.lead = list(range(at + 1, end + 1))
            behind = [self.code[number][1] or "" for number in range(one.first, one.head_end + 1)]
            one.behind = " ".join(text.strip() for text in behind if not text.strip().startswith("NOLINT")).strip()
            last = before.get(one.scope, one.scope if one.scope.kind == "inline namespace" else None)
            if last and not one.lead and not one.behind and not last.behind and (last.last >= at or last is one.scope):
                alike = one.name == last.name or one.kind == last.name or last is one.scope
                alike = alike or (one.kind == last.kind and not one.is_variable)
                one.inherited = (last.lead or last.inherited) if alike else None
            before[one.scope] = one

    def is_self_explained(self, one):
        if SELF_EXPLAINED.fullmatch(one.name):
            return True
        siblings = [other for other in self.declarations if other.scope is one.scope and other.is_variable]
        return (one.is_variable and one.scope.kind == "struct" and len(siblings) <= 3 and
                not any(other.lead or other.behind for other in siblings) and one.scope.explained)

    def is_left_out(self, one):
        if not one.visible:
            return True
        if one.kind == "inline namespace" or one.lead or one.behind:
            return False
        if FOR_TEMPORARIES.search(one.text) or NOT_FOR_USERS.match(one.text):
            return True
        special = SPECIAL.format(re.escape(one.scope.name or "-"))
        return bool(re.fullmatch(special, one.text.strip()) or (not one.inherited and UNMENTIONED.match(one.text)))


# --- text ------------------------------------------------------------------------------------------------------------

def escape(text):
    """Prose as Doxygen's Markdown, but for what stands in back quotes."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if at % 2 else re.sub(r"[<>#@%\\&]", r"\\\g<0>", part) for at, part in enumerate(parts))


def convert(texts):
    """The lines of a comment without //, with examples marked as code and 'Threads: ...' as items of a list."""
    lines, kind = [], "prose"
    for text in texts:
        indent = len(text) - len(text.lstrip())
        label = LABEL.match(text) if not lines or kind == "item" or not lines[-1].strip() else None
        if not text.strip():
            lines.append("" if kind != "code" else text)
            continue
        if kind == "code" and indent < 3:
            last = max(at for at, line in enumerate(lines) if line.strip())
            lines[last] += " @endcode"
            kind = "prose"
        if label and len(lines) > 0:
            kind = "item"
            lines.append(f" - **{label[1]}:** {escape(label[2])}")
        elif kind == "item" and indent >= 3:
            lines.append("   " + escape(text.strip()))
        elif kind != "code" and indent >= 3 and lines:
            lines[-1] += " @code{.cpp}"
            lines.append(text)
            kind = "code"
        elif kind == "code":
            lines.append(text)
        else:
            kind = "prose"
            lines.append(" " + escape(text.strip()))
    if kind == "code":
        lines[-1] += " @endcode"
    return lines


def flat(texts):
    """The prose of a comment in one line."""
    return " ".join(escape(text.strip()) for text in texts if text.strip() and not text.startswith("   "))


def main(path):
    header = Header(path.read_text(encoding="utf-8").splitlines(), path.parent.name == "detail")
    comments = [comment for _, comment in header.code]
    start = 0
    while start < len(header.lines) and header.is_comment(start):
        start += 1
    header.attach(start)
    out = [line or "" for line in header.lines]

    camel = "".join(part.capitalize() for part in path.stem.split("_"))
    classes = [one for one in header.declarations if one.visible and one.is_scope and "namespace" not in one.kind and
               one.scope.kind == "namespace"]
    bare = [one for one in classes if not one.lead and not one.inherited]
    main_class = next((one for one in classes if one.name == camel), bare[0] if len(bare) == 1 else None)

    head = convert(comments[:start]) if not header.in_detail else []
    title = re.match(r" (\w+): (.)(.*)", head[0]) if head else None
    titled = title and main_class and title[1] == main_class.name  # "Run: ..." is about class Run
    if titled:
        head[0] = f" {title[2].upper()}{title[3]}"

    for one in classes:
        one.explained = bool(one.lead or one.inherited or one is main_class)

    # From the last to the first, so that columns stay what they were.
    for one in reversed(header.declarations):
        if header.is_left_out(one):
            for number in [*one.lead, *range(one.first, one.last + 1)]:
                out[number] = ""
            continue
        if one.kind == "inline namespace":
            out[one.first] = out[one.last] = ""
            continue
        if one.kind == "namespace":
            continue
        documents = []
        if one is main_class and (titled or not one.lead):
            documents.append(f"@copydoc {path.name}")
        if one.inherited:
            documents.append(flat([comments[number] for number in one.inherited]))
        if one.behind:
            documents.append(escape(one.behind))
        for number, text in zip(one.lead, convert([comments[number] for number in one.lead])):
            out[number] = "///" + text
        if one is main_class and one.lead and documents:  # the summary comes from the first comment
            out[one.lead[0]] = f"/** @copybrief {path.name} */ /// @details{out[one.lead[0]][3:]}"
            documents[0] = f"@copydetails {path.name}"
        if not documents and not one.lead and header.is_self_explained(one):
            documents.append("@brief \u200b")  # a space of no width: Doxygen takes it for documentation
        before, code = out[one.first][:one.column], out[one.first][one.column:]
        several = VARIABLES.match(code) if one.is_variable else None
        if not documents and several and one.lead:
            documents = [flat([comments[number] for number in one.lead])]
            for number in one.lead:
                out[number] = ""
        if documents and several:  # Doxygen documents the first of several variables only
            parts = [several["first"], *several["rest"].rstrip(";").split(", ")]
            code = " ".join(f"/** {' '.join(documents)} */ {several['type']}{part};" for part in parts)
        elif documents:
            code = f"/** {' '.join(documents)} */ {code}"
        out[one.first] = before + code

    for number, text in enumerate(head):
        out[number] = "///" + text
    if head:  # the place of @file is free; a line of its own would move all others
        at = head.index("") if "" in head else len(head) - 1
        out[at] += f" @file {path.name}"
    print("\n".join(out))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
