"""The string literals of the sources, as messages with `…` in place of what they insert.

Literals that a plus joins are one message, and so are the literals among the arguments of one call, with `…` between
them.
"""

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GAP = "…"
SPACE = re.compile(r"\s+")
# Comments, characters, and the beginnings of strings, of Rust, Java and Scala.
TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<raw>b?r(?P<hashes>\#*)"(?P<rawtext>.*?)"(?P=hashes))|(?P<char>b?'(?:\\[^\n']+|[^'\\\n])')"""
    r"""|(?P<triple>[sf]?\"\"\")|(?P<string>[sfbc]?")|(?P<word>[A-Za-z_]\w*!?)|(?P<mark>\S)""",
    re.DOTALL,
)
# Placeholders of formats: {}, {name:?} of Rust and slf4j, %s and %.1f of Java.
INSERTED = {
    ".rs": re.compile(r"(?<!\{)\{[^{}]*\}"),
    ".java": re.compile(r"\{\}|%[-0-9.,]*[a-z]"),
    ".scala": re.compile(r"\{\}"),
}
UNIT_TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod \w+ \{$", re.MULTILINE)
ESCAPE = re.compile(r"\\(?:u\{?([0-9a-fA-F]{1,6})\}?|\n\s*|(.))", re.DOTALL)
ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


@dataclass(frozen=True)
class Token:
    kind: str  # "text", or the word or mark itself
    text: str
    line: int


@dataclass(frozen=True)
class Message:
    text: str
    place: str

    def runs(self):
        return [run for run in self.text.split(GAP) if run]


def unescape(text):
    return ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else ESCAPED.get(m[2], m[2]) if m[2] else "", text)


def end_of_braces(source, at):
    """The offset after the brace that closes the one at `at`, in Scala."""
    depth = 0
    while at < len(source):
        if source[at] == '"':
            at = (
                interpolated(source, at + 1, False)[1]
                if source[at : at + 3] != '"""'
                else source.index('"""', at + 3) + 3
            )
            continue
        depth += {"{": 1, "}": -1}.get(source[at], 0)
        at += 1
        if depth == 0:
            break
    return at


def interpolated(source, at, inserts, end='"'):
    """The text of a string from `at` to its end, and the offset after it; `$name` and `${…}` are gaps if it inserts
    values.
    """
    out = ""
    while not source.startswith(end, at):
        if inserts and source.startswith("$$", at):
            out, at = out + "$", at + 2
        elif inserts and source[at] == "$":
            out += GAP
            name = re.compile(r"\$[A-Za-z]\w*").match(source, at)
            at = name.end() if name else end_of_braces(source, at + 1)
        elif source[at] == "\\":
            out, at = out + source[at : at + 2], at + 2
        else:
            out, at = out + source[at], at + 1
    return out, at + len(end)


def tokens(path):
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".rs":
        source = UNIT_TESTS.split(source)[0]
    at, line, counted = 0, 1, 0
    while match := TOKEN.search(source, at):
        line, counted = line + source.count("\n", counted, match.start()), match.start()
        at = match.end()
        if match["string"] or match["triple"]:
            opening = match["string"] or match["triple"]
            text, at = interpolated(source, at, path.suffix == ".scala" and opening[0] in "sf", opening.lstrip("sfbc"))
            if match["string"]:
                text = unescape(text)
        elif match["raw"]:
            text = match["rawtext"]
        elif match["word"] or match["mark"]:
            yield Token(match[0], "", line)
            continue
        else:
            continue
        text = INSERTED[path.suffix].sub(GAP, text)
        if path.suffix == ".rs":
            text = text.replace("{{", "{").replace("}}", "}")
        yield Token("text", SPACE.sub(" ", text), line)


@cache
def joined(path):
    """The tokens of a file. Strings that a plus joins are one, and the plus is dropped."""
    out = []
    for token in tokens(path):
        if token.kind == "text" and len(out) > 1 and out[-1].kind == "+" and out[-2].kind == "text":
            out.pop()
            out[-1] = Token("text", out[-1].text + token.text, out[-1].line)
        else:
            out.append(token)
    return out


def arguments(some, at):
    """The literals between the bracket at `at` and the one that closes it, as one text."""
    depth, texts = 0, []
    for token in some[at:]:
        depth += {"(": 1, ")": -1}.get(token.kind, 0)
        if token.kind == "text":
            texts.append(token.text)
        if depth == 0:
            break
    return GAP.join(texts)


def place(path, line):
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{line}"


def calls(path, names):
    """The messages in calls of functions, constructors and attributes whose name the pattern matches."""
    if path.suffix == ".py":
        return python_calls(path, names)
    some = joined(path)
    return [
        Message(text, place(path, token.line))
        for at, token in enumerate(some[:-1])
        if re.fullmatch(names, token.kind) and some[at + 1].kind == "(" and (text := arguments(some, at + 1))
    ]


def said(path, names):
    """The messages in calls of these names; without names, every literal."""
    return literals(path) if names is None else calls(path, names)


def literals(path):
    if path.suffix == ".py":
        tree = ast.parse(path.read_text(encoding="utf-8"))
        return [
            Message(text, place(path, node.lineno))
            for node in ast.walk(tree)
            if isinstance(node, ast.expr) and (text := python_text(node))
        ]
    return [Message(token.text, place(path, token.line)) for token in joined(path) if token.kind == "text"]


def python_text(node):
    """The text of an expression that makes a string; None for others."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return SPACE.sub(" ", node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(python_text(part) or GAP for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return (python_text(node.left) or GAP) + (python_text(node.right) or GAP)
    return None


def python_calls(path, names):
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            texts = [text for argument in node.args if (text := python_text(argument))]
            if re.fullmatch(names, name) and texts:
                found.append(Message(GAP.join(texts), place(path, node.lineno)))
    return found
