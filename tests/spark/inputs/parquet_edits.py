"""Parquet files with random edits of their metadata, made from a seed.

A footer and a page header are structures of Thrift's compact protocol. They are parsed to trees, edited and written
again, so that an edit changes the meaning, like a wrong writer: unlike with random bytes, most of these files are
well-formed.
"""

from dataclasses import dataclass
from random import Random

MAGIC = b"PAR1"
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
INTEGERS = (I16, I32, I64)
# Fields of the footer, of a row group, of a chunk and of its metadata.
SCHEMA, ROW_GROUPS, CHUNKS, METADATA, PATH, NAME = 2, 4, 1, 3, 3, 4


@dataclass
class Value:
    """A number, bytes, a list of values, or the fields of a structure by number."""

    kind: int
    content: object
    of: int = 0
    """The type of a list's elements."""

    def field(self, number: int) -> "Value | None":
        return self.content.get(number)

    def all(self):
        """This value and those in it."""
        yield self
        inside = self.content.values() if self.kind == STRUCT else self.content if self.kind == LIST else ()
        for value in inside:
            yield from value.all()

    def copy(self) -> "Value":
        content = self.content
        if self.kind == STRUCT:
            content = {number: value.copy() for number, value in content.items()}
        elif self.kind == LIST:
            content = [value.copy() for value in content]
        return Value(self.kind, content, self.of)


class Input:
    def __init__(self, data: bytes, at: int = 0):
        self.data, self.at = data, at

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def take(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def value(self, kind: int) -> Value:
        match kind:
            case 1 | 2 | 3:
                return Value(kind, self.byte() if kind == BYTE else kind)
            case 4 | 5 | 6:
                number = self.varint()
                return Value(kind, number >> 1 ^ -(number & 1))
            case 7:
                return Value(kind, self.take(8))
            case 8:
                return Value(kind, self.take(self.varint()))
            case 9:
                header = self.byte()
                count = self.varint() if header >> 4 == 0xF else header >> 4
                return Value(kind, [self.value(header & 0xF) for _ in range(count)], header & 0xF)
        assert kind == STRUCT, kind
        fields, number = {}, 0
        while header := self.byte():
            assert header >> 4, "fields are in order"
            number += header >> 4
            fields[number] = self.value(header & 0xF)
        return Value(STRUCT, fields)


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def encode(value: Value) -> bytes:
    match value.kind:
        case 1 | 2:
            return b""
        case 3:
            return bytes((value.content,))
        case 4 | 5 | 6:
            return varint(value.content << 1 if value.content >= 0 else (-value.content << 1) - 1)
        case 7:
            return value.content
        case 8:
            return varint(len(value.content)) + value.content
        case 9:
            count = len(value.content)
            return (
                bytes((count << 4 | value.of,)) if count < 15 else bytes((0xF0 | value.of,)) + varint(count)
            ) + b"".join(map(encode, value.content))
    out, last = b"", 0
    for number, field in sorted(value.content.items()):
        out += bytes((number - last << 4 | field.kind,)) + encode(field)
        last = number
    return out + b"\0"


def footer_of(file: bytes) -> tuple[bytes, Value]:
    """What comes before the footer, and the footer."""
    start = len(file) - 8 - int.from_bytes(file[-8:-4], "little")
    return file[:start], Input(file, start).value(STRUCT)


def with_footer(data: bytes, footer: Value) -> bytes:
    encoded = encode(footer)
    return data + encoded + len(encoded).to_bytes(4, "little") + MAGIC


def groups(footer: Value) -> list[Value]:
    return footer.field(ROW_GROUPS).content


def chunks(footer: Value, rng: Random) -> list[Value]:
    """Those of a row group."""
    return rng.choice(groups(footer)).field(CHUNKS).content


def path(chunk: Value) -> Value:
    return chunk.field(METADATA).field(PATH)


def other_number(number: int, numbers: list[int], rng: Random) -> int:
    # Not a large one: readers use it as a size, and allocate that much.
    return rng.choice((0, 1, -1, number + 1, number - 1, number * 2, number // 2, -number, rng.choice(numbers)))


def change_number(tree: Value, rng: Random) -> None:
    found = [value for value in tree.all() if value.kind in INTEGERS]
    value = rng.choice(found)
    value.content = other_number(value.content, [each.content for each in found if abs(each.content) < 1 << 20], rng)


def swap_paths(footer: Value, rng: Random) -> None:
    among = chunks(footer, rng)
    one, other = rng.choice(among), rng.choice(among)
    path(one).content, path(other).content = path(other).content, path(one).content


def change_path(footer: Value, rng: Random) -> None:
    among = chunks(footer, rng)
    known = path(rng.choice(among)).copy().content
    unknown = [Value(BINARY, rng.choice((b"x", b"A", b"a.b", b"")))]
    path(rng.choice(among)).content = rng.choice((known, known, unknown, known + unknown, []))


def reorder(values: list, rng: Random) -> None:
    match rng.randrange(4):
        case 0:
            rng.shuffle(values)
        case 1:
            values.pop(rng.randrange(len(values)))
        case 2:
            values.insert(rng.randrange(len(values) + 1), rng.choice(values).copy())
        case _:
            values[rng.randrange(len(values))] = rng.choice(values).copy()


def change_name(footer: Value, rng: Random) -> None:
    elements = footer.field(SCHEMA).content
    rng.choice(elements).field(NAME).content = rng.choice((b"x", b"A", b"", rng.choice(elements).field(NAME).content))


def drop_field(footer: Value, rng: Random) -> None:
    tree = rng.choice([value for value in footer.all() if value.kind == STRUCT and value.content])
    tree.content.pop(rng.choice(list(tree.content)))


def flip_boolean(footer: Value, rng: Random) -> None:
    found = [value for value in footer.all() if value.kind in (TRUE, FALSE)]
    for value in rng.sample(found, min(1, len(found))):
        value.kind = FALSE if value.kind == TRUE else TRUE


def name_a_file(footer: Value, rng: Random) -> None:
    rng.choice(chunks(footer, rng)).content[1] = Value(BINARY, b"other")


FOOTER_EDITS = {
    "paths swapped": swap_paths,
    "a path": change_path,
    "a number": change_number,
    "numbers": lambda footer, rng: [change_number(footer, rng) for _ in range(3)],
    "chunks": lambda footer, rng: reorder(chunks(footer, rng), rng),
    "row groups": lambda footer, rng: reorder(groups(footer), rng),
    "columns": lambda footer, rng: reorder(footer.field(SCHEMA).content, rng),
    "a name": change_name,
    "a field": drop_field,
    "a boolean": flip_boolean,
    "a type of a column": lambda footer, rng: change_number(rng.choice(footer.field(SCHEMA).content[1:]), rng),
    "a file": name_a_file,
    "a row group": lambda footer, rng: change_number(rng.choice(groups(footer)), rng),
}


def with_page_edit(data: bytes, footer: Value, rng: Random) -> bytes:
    """With another number in the header of a page, which keeps its length."""
    metadata = rng.choice(chunks(footer, rng)).field(METADATA)
    start = metadata.field(rng.choice([number for number in (9, 11) if metadata.field(number)])).content
    header = Input(data, start)
    tree = header.value(STRUCT)
    for _ in range(20):
        edited = tree.copy()
        change_number(edited, rng)
        encoded = encode(edited)
        if len(encoded) == header.at - start and edited != tree:
            return data[:start] + encoded + data[header.at :]
    return data


def edited(file: bytes, rng: Random) -> tuple[str, bytes]:
    """A file with an edit, and what it is."""
    data, footer = footer_of(file)
    what = rng.choice([*FOOTER_EDITS, "a page", "a page", "a byte"])
    if what == "a page":
        return what, with_footer(with_page_edit(data, footer, rng), footer)
    if what == "a byte":
        at = rng.randrange(len(data), len(file))
        return what, file[:at] + bytes((file[at] ^ 1 << rng.randrange(8),)) + file[at + 1 :]
    FOOTER_EDITS[what](footer, rng)
    return what, with_footer(data, footer)
