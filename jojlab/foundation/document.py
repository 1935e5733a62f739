"""Reads TOML documents, and checks that a document of TOML or JSON has the types of a class.

msgspec checks. Here its errors become messages that name the place as the author wrote it, the
value that stands there, and the remedy.
"""

from __future__ import annotations

import re
import reprlib
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from jojlab.foundation.errors import UseError, unreadable
from jojlab.foundation.printable import nearest

Kind = TypeVar("Kind")

# What msgspec calls a type, what it is called here, and how to write one.
_TYPES = {
    "str": ("text", "put it in quotes"),
    "int": ("a whole number", "write it in digits, without quotes"),
    "float": ("a number", "write it in digits, without quotes"),
    "bool": ("true or false", "write true or false, without quotes"),
    "array": ("a list", 'write it as ["...", "..."], a list of tables as [[{key}]]'),
    "object": ("a table", "write [{key}] on a line of its own"),
    "null": ("nothing", "leave it out"),
}
_SCALAR = {"str", "int", "float", "bool"}
_EXPECTED = re.compile(r"Expected `(?P<types>[^`]*)`(?:, got `[^`]*`)?(?P<limit>.*)")
_ERROR = re.compile(r"(?P<reason>.*?)(?: - at `\$(?P<path>[^`]*)`)?", re.DOTALL)
_STEPS = re.compile(r"\.(?P<key>[^.\[]+)|\[(?P<index>\d+)\]|\[\.\.\.\]")


class Mismatch(ValueError):
    """A document is not as its class says. `message` names the place, `remedy` what to write."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


def read_toml(path: Path, form: str) -> tuple[str, dict[str, Any]]:
    """Return a file's text and the document in it; `form` says where its form is described.

    Raises UseError naming the file and, of a slip in the syntax, the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except OSError as error:
        raise unreadable(path, error, "name a readable file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UseError(f"{path}: not TOML: {error}", f"correct it; {form}") from error
    except ValueError as error:  # int() refuses thousands of digits
        message = f"{path}: a number has more than {sys.get_int_max_str_digits()} digits"
        raise UseError(message, f"correct it; {form}") from error
    except RecursionError as error:
        raise UseError(f"{path}: not TOML: tables or lists are nested too deep", form) from error


def check_document(document: object, kind: type[Kind], where: str, form: str) -> Kind:
    """Return what `conform` makes of a document that somebody wrote; its errors as UseErrors."""
    try:
        return conform(document, kind, where)
    except Mismatch as error:
        raise UseError(error.message, "; ".join(filter(None, (error.remedy, form)))) from error


def conform(document: object, kind: type[Kind], where: str = "") -> Kind:
    """Return the document as a `kind`; raises Mismatch with the place in it, after `where`."""
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        found = _ERROR.fullmatch(str(error))
        assert found, error
        place, value, inner = _walk(found["path"] or "", document, kind)
        owner = ": ".join(filter(None, (where, place))) or "the document"
        if isinstance(rule := error.__cause__, Mismatch):  # of the class's own __post_init__
            raise Mismatch(f"{owner}: {rule.message}", rule.remedy) from error
        raise _mismatch(found["reason"], owner, value, inner) from error


def _mismatch(reason: str, owner: str, value: object, kind: Any) -> Mismatch:
    if found := re.fullmatch(r"Object missing required field `(.*)`", reason):
        return Mismatch(f"{owner} lacks {found[1]}", f"add {found[1]}")
    if found := re.fullmatch(r"Object contains unknown field `(.*)`", reason, re.DOTALL):
        known = list(_field_types(_member(kind, type)))
        hint = nearest(found[1], known)
        return Mismatch(f"{owner} has no key {found[1]!r}{hint}", f"known: {', '.join(known)}")
    text = reprlib.repr(value)
    if reason.startswith("Invalid enum value"):
        choices = get_args(_member(kind, Literal))
        hint = nearest(str(value), choices)
        return Mismatch(f"{owner} cannot be {text}{hint}", f"one of: {', '.join(choices)}")
    if not (found := _EXPECTED.fullmatch(reason)):
        return Mismatch(f"{owner}: {reason}", "")
    if "matching regex" in found["limit"]:
        return Mismatch(f"{owner} is empty: {text}", "write a text")
    if found["limit"]:
        return Mismatch(f"{owner} cannot be {text}", f"allowed:{found['limit']}")
    words, remedy = _describe_types(found["types"].split(" | "))
    key = re.split(r"[.\[ ]", owner)[-1]
    return Mismatch(f"{owner} must be {words}, not {text}", remedy.format(key=key))


def _describe_types(types: list[str]) -> tuple[str, str]:
    """Return in words which types are expected, and how to write the first of them."""
    wanted = [name for name in types if name != "null"] or types
    remedy = _TYPES[wanted[0]][1]
    if set(wanted) >= _SCALAR:
        wanted = [name for name in wanted if name not in _SCALAR]
        return " or ".join(["a single value", *(_TYPES[name][0] for name in wanted)]), remedy
    if "float" in wanted:  # which whole numbers are, too
        wanted = [name for name in wanted if name != "int"]
    return " or ".join(_TYPES[name][0] for name in wanted), remedy


def _walk(path: str, value: Any, kind: Any) -> tuple[str, Any, Any]:
    """Follow a path of msgspec; return it as an author writes it, and the value and type there."""
    place = ""
    for step in _STEPS.finditer(path):
        if step["index"]:
            kind = get_args(_member(kind, list))[0]
            place, value = f"{place}[{step['index']}]", value[int(step["index"])]
            continue
        if step["key"]:
            key = step["key"]
            kind = _field_types(_member(kind, type))[key]
        else:  # a value of a table, whose key msgspec does not name
            kind = get_args(_member(kind, dict))[1]
            key = _wrong_key(value, kind)
        place, value = f"{place}.{key}".lstrip("."), value[key]
    return place, value, kind


def _field_types(kind: type) -> dict[str, Any]:
    """Return the types of a class's fields by the names that documents have for them."""
    names = {}
    if issubclass(kind, msgspec.Struct):
        names = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    hints = get_type_hints(kind, include_extras=True)
    return {names.get(name, name): type_ for name, type_ in hints.items()}


def _wrong_key(table: Mapping[str, Any], kind: Any) -> str:
    """Return the first key whose value is not of `kind`."""
    for key, value in table.items():
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError:
            return key
    raise AssertionError(f"every value is a {kind}")


def _member(kind: Any, wanted: Any) -> Any:
    """Return the list, dict, Literal or class (`type`) among a type and the members of a union."""
    members = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    if wanted is type:
        return next(member for member in members if isinstance(member, type))
    return next(member for member in members if get_origin(member) is wanted)
