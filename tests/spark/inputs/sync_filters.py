"""Random trees and rules of filters for test_sync_rules.py; most of the rules match something."""

import os
import random
from dataclasses import dataclass
from pathlib import Path

NAMES = ("a", "b", "foo", "bar.o", "c d", "é", ".x", "A-1", "[q]")
SAME_TIME_S = 1_500_000_000


@dataclass(frozen=True)
class Node:
    path: str
    is_directory: bool
    in_source: bool
    in_destination: bool


def tree(chance: random.Random, most: int = 45) -> list[Node]:
    """Entries of the same kind on both sides, so that none is in the way of another."""
    nodes: dict[str, Node] = {}
    # Without a directory, all names are soon used up.
    for _ in range(100 * most):
        if len(nodes) == most:
            break
        above = chance.choice([node for node in nodes.values() if node.is_directory] + [None] * 3)
        path = f"{above.path}/{chance.choice(NAMES)}" if above else chance.choice(NAMES)
        if path.count("/") < 4 and path not in nodes:
            in_source, in_destination = chance.choice([(True, True), (True, False), (False, True)])
            in_source, in_destination = (
                in_source and (not above or above.in_source),
                in_destination and (not above or above.in_destination),
            )
            nodes[path] = Node(path, chance.random() < 0.5, in_source, in_destination)
    return list(nodes.values())


def make(top: Path, nodes: list[Node], side: str) -> None:
    top.mkdir(parents=True)
    for node in nodes:
        if getattr(node, f"in_{side}"):
            path = top / node.path
            if node.is_directory:
                path.mkdir()
            else:
                path.write_text(side)
                os.utime(path, (SAME_TIME_S + len(side), SAME_TIME_S))


def rules(chance: random.Random, nodes: list[Node], root: Path) -> dict[str, list[str]]:
    """Arguments of `millstream.sync`."""
    found: dict[str, list[str]] = {"filters": [], "include": [], "exclude": []}
    for _ in range(chance.randint(1, 6)):
        match chance.randrange(8):
            case 0:
                found["include"].append(pattern(chance, nodes))
            case 1 | 2:
                found["exclude"].append(pattern(chance, nodes))
            case _:
                found["filters"].append(rule(chance, nodes, root))
    return found


def rule(chance: random.Random, nodes: list[Node], root: Path) -> str:
    if chance.random() < 0.03:
        return chance.choice(["!", "clear"])
    short, name = chance.choice(
        [
            ("-", "exclude"),
            ("-", "exclude"),
            ("-", "exclude"),
            ("+", "include"),
            ("+", "include"),
            ("H", "hide"),
            ("S", "show"),
            ("P", "protect"),
            ("P", "protect"),
            ("R", "risk"),
        ]
    )
    letters = "".join(letter for letter in "!p" + ("sr" if short in "+-" else "") if chance.random() < 1 / 6)
    text = pattern(chance, nodes)
    if chance.random() < 1 / 10:
        letters += "/"
        text = f"{root}/{chance.choice(['source', 'destination', '*'])}/{text.lstrip('/')}"
    head = chance.choice(
        [short + letters, f"{short},{letters}" if letters else short, f"{name},{letters}" if letters else name]
    )
    return head + chance.choice([" ", "_"]) + text


def pattern(chance: random.Random, nodes: list[Node]) -> str:
    parts = chance.choice(nodes).path.split("/")
    first = chance.choice([0, chance.randrange(len(parts))])
    parts = [wild(chance, part) for part in parts[first : chance.randint(first + 1, len(parts))]]
    before = chance.choice(["", "", "", "/", "/", "**/", "*/", "**", "*"])
    return before + "/".join(parts) + chance.choice(["", "", "", "/", "/**", "/***", "/*", "*", "**"])


def wild(chance: random.Random, name: str) -> str:
    match chance.randrange(8):
        case 0:
            return "*"
        case 1:
            return "**"
        case 2:
            return name[:-1] + "?"
        case 3:
            return f"[{name[0]}z]{name[1:]}" if name[0].isalnum() else name
        case 4:
            return "".join(chance.choice([letter, "*"]) for letter in name)
        case _:
            return name


def options(arguments: dict[str, list[str]]) -> list[str]:
    """The same as options of rsync."""
    kinds = (("filters", "filter"), ("include", "include"), ("exclude", "exclude"))
    return [f"--{option}={rule}" for name, option in kinds for rule in arguments[name]]
