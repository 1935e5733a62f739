"""The type of a field of a case: its kind, possible values, and the errors for other values."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from jojlab.foundation.errors import UseError, refuse_unknown

Value = str | int
Settings = Mapping[str, Value]

# The group of the fields that every workload has.
EVERY_WORKLOAD = ""


class FieldKind(Enum):
    """The kinds of a field's values."""

    TEXT = auto()
    WORD = auto()  # one of the field's choices
    NUMBER = auto()  # a whole number in the field's range
    FOLDER = auto()  # the path of a folder; all beneath it goes into the guest
    FILE_OR_FOLDER = auto()  # the path of either
    SOURCES = auto()  # the path of a folder that the agent is built with; it stays on this machine
    PROGRAM = auto()  # the path of a program, or the name of one of the system's
    WORDS = auto()  # words for the guest, quoted as in a shell
    PROGRAMS = auto()  # words, each the name of a program, or on the command line its path
    VARIABLES = auto()  # words, each NAME=VALUE


class Changes(Enum):
    """The part of a case that another value of a field changes."""

    WORK = auto()  # the work that is done: two cases that differ here cannot be compared by cost
    MEANS = auto()  # how the same work is done
    TARGET = auto()  # the device, the filesystem or the kernel that the same work is done on
    PROCESSOR = auto()  # the instruction set


@dataclass(frozen=True)
class Field:
    """One field. A field with `choices` is a word, one with `limits`, the least and the greatest, a
    number; `kind` tells others.

    `group` names the workloads that have it (Workload.groups); a workload's name is the group of
    that workload alone. `workloads` and `heading`, the title that `--help` shows it under, follow
    from the group (jojlab/model/fields.py); no workloads are all. `names_itself` says that a value
    is understood without the field's name, such as "wal".
    """

    name: str
    meaning: str
    default: Value | None
    choices: tuple[str, ...] = ()
    limits: tuple[int, int] | None = None
    kind: FieldKind = FieldKind.TEXT
    group: str = EVERY_WORKLOAD
    changes: Changes = Changes.WORK
    names_itself: bool = False
    # Of a field of programs: values that are joj's own, and no program of this machine.
    built_in: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    heading: str = ""

    def __post_init__(self) -> None:
        """Derive the kind of a word or a number."""
        if self.choices:
            object.__setattr__(self, "kind", FieldKind.WORD)
        if self.limits:
            object.__setattr__(self, "kind", FieldKind.NUMBER)

    @property
    def is_input(self) -> bool:
        """Return whether its text is the path of something that a guest needs."""
        paths = (FieldKind.FOLDER, FieldKind.FILE_OR_FOLDER, FieldKind.PROGRAM, FieldKind.SOURCES)
        return self.kind in paths

    @property
    def path_word(self) -> str:
        """Return what stands for its text in a message."""
        words = {FieldKind.FILE_OR_FOLDER: "PATH", FieldKind.PROGRAM: "NAME"}
        return words.get(self.kind, "FOLDER")

    @property
    def is_list(self) -> bool:
        """Return whether the guest gets the words of its text."""
        return self.kind in (FieldKind.WORDS, FieldKind.PROGRAMS, FieldKind.VARIABLES)

    @property
    def is_number(self) -> bool:
        """Return whether its values are whole numbers."""
        return self.kind is FieldKind.NUMBER

    @property
    def changes_work(self) -> bool:
        """Return whether cases that differ in it do different work."""
        return self.changes in (Changes.WORK, Changes.PROCESSOR)

    @property
    def is_target_field(self) -> bool:
        """Return whether a directory of this machine decides it, where a case runs in one."""
        return self.changes in (Changes.TARGET, Changes.PROCESSOR)

    @property
    def range(self) -> str:
        """Return the allowed whole numbers as "1 to 100"; empty where it is no number."""
        return f"{self.limits[0]} to {self.limits[1]}" if self.limits else ""

    def applies(self, workload: Value) -> bool:
        """Return whether a case of `workload` has this field."""
        return not self.workloads or workload in self.workloads

    def check(self, value: object, where: str) -> Value:
        """Return `value` if the field may have it; UseError with the nearest known value."""
        if self.is_number:
            return self._check_number(value, where)
        if not isinstance(value, str):
            raise UseError(f"{where}: {self.name} must be text, not {value!r}", "put it in quotes")
        words = self.words(value, where) if self.is_list else []
        if self.kind is FieldKind.VARIABLES:
            for word in words:
                self._check_variable(word, where)
        if self.choices:
            refuse_unknown(value, self.choices, f"{where}: {self.name} cannot be {value!r}")
        return value

    def _check_number(self, value: object, where: str) -> int:
        assert self.limits
        least, greatest = self.limits
        if not isinstance(value, int) or isinstance(value, bool):
            raise UseError(
                f"{where}: {self.name} must be a whole number, not {value!r}", f"{least} or more"
            )
        if not least <= value <= greatest:
            raise UseError(f"{where}: {self.name} cannot be {value}", f"allowed: {self.range}")
        return value

    def _check_variable(self, word: str, where: str) -> None:
        name, equals, _ = word.partition("=")
        if not equals or not name:
            raise UseError(
                f"{where}: {self.name}: {word!r} is no variable", "write each as NAME=VALUE"
            )

    def words(self, text: str, where: str) -> list[str]:
        """Return the words of a text; UseError where a quote is left open."""
        try:
            return shlex.split(text)
        except ValueError as error:
            raise UseError(
                f"{where}: {self.name} = {text!r}: {error}", "quote it as in a shell"
            ) from None

    def parse(self, text: str, where: str) -> Value:
        """Read a value from the command line; a file's path is relative to the user's folder."""
        if self.kind is FieldKind.PROGRAM and "/" not in text:
            return self.check(text, where)
        if self.is_input and text and text not in self.built_in:
            return str(Path(text).absolute())
        if not self.is_number:
            return self.check(text, where)
        try:
            return self.check(int(text.replace("_", "")), where)
        except ValueError:
            raise UseError(
                f"{where}: {self.name} must be a whole number, not {text!r}", "digits only"
            ) from None
