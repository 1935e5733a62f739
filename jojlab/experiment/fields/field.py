"""One field of a case: its meaning, its possible values, and the errors for other values."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from jojlab.foundation.errors import UseError
from jojlab.foundation.nearest import nearest

Value = str | int


@dataclass(frozen=True)
class Field:
    """One field. `choices` for words, `lowest`/`highest` for whole numbers, neither for text.

    `workloads` are those that have the field; empty: all. `is_file`: the text is a file's path;
    `is_folder`: a folder's, all that is beneath it included; `is_program`: a program's, or the name
    of one of the system's. `is_list`: the guest is given the words of the text, quoted as in a
    shell. `is_program_list`: each word is such a name, or on the command line a path;
    `is_variables`: each is NAME=VALUE.
    """

    name: str
    meaning: str
    default: Value | None
    choices: tuple[str, ...] = ()
    lowest: int | None = None
    highest: int | None = None
    workloads: tuple[str, ...] = ()
    is_file: bool = False
    is_folder: bool = False
    is_program: bool = False
    is_list: bool = False
    is_program_list: bool = False
    is_variables: bool = False

    @property
    def is_input(self) -> bool:
        """Whether its text is the path of something that goes into the guest."""
        return self.is_file or self.is_folder or self.is_program

    @property
    def is_number(self) -> bool:
        """Whether its values are whole numbers."""
        return self.lowest is not None

    @property
    def range(self) -> str:
        """The whole numbers that it may be, as "1 to 100"; empty where it is no number."""
        if not self.is_number:
            return ""
        return f">= {self.lowest}" if self.highest is None else f"{self.lowest} to {self.highest}"

    def applies(self, workload: Value) -> bool:
        """Whether a case of `workload` has this field."""
        return not self.workloads or workload in self.workloads

    def check(self, value: object, where: str) -> Value:
        """Return `value` if the field may have it.

        Raises UseError naming the place, the field, and the nearest known value.
        """
        if self.is_number:
            return self._check_number(value, where)
        if not isinstance(value, str):
            raise UseError(f"{where}: {self.name} must be text, not {value!r}", "put it in quotes")
        words = self.words(value, where) if self.is_list else []
        if self.is_variables:
            for word in words:
                self._check_variable(word, where)
        if self.choices and value not in self.choices:
            hint = nearest(value, self.choices)
            raise UseError(
                f"{where}: {self.name} cannot be {value!r}{hint}",
                f"one of: {', '.join(self.choices)}",
            )
        return value

    def _check_number(self, value: object, where: str) -> int:
        assert self.lowest is not None
        if not isinstance(value, int) or isinstance(value, bool):
            raise UseError(
                f"{where}: {self.name} must be a whole number, not {value!r}",
                f"{self.lowest} or more",
            )
        if value < self.lowest or (self.highest is not None and value > self.highest):
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
        if self.is_program and "/" not in text:
            return self.check(text, where)
        if self.is_input and text:
            return str(Path(text).absolute())
        if not self.is_number:
            return self.check(text, where)
        try:
            return self.check(int(text.replace("_", "")), where)
        except ValueError:
            raise UseError(
                f"{where}: {self.name} must be a whole number, not {text!r}", "digits only"
            ) from None
