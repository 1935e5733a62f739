"""The files and folders that a case names: where they are, which may be named, and which settings
of SQLite lie beside scripts that joj export wrote.

An experiment file names files beneath its own folder, so that a stranger's experiment reads
nothing else of this machine. A path given on the command line is the user's own word, and may lead
anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath

from jojlab.experiment.cases import Case
from jojlab.foundation.document import read_toml
from jojlab.foundation.errors import UseError
from jojlab.guest.program_files import found_program
from jojlab.model.field import FieldKind, Value
from jojlab.model.fields import BY_NAME
from jojlab.model.workloads import with_group
from jojlab.model.workloads.sqlite import SCRIPTS, SQL_RECORDED
from jojlab.recording import sql_settings
from jojlab.recording.folder import Recording


def refuse_outside(name: str, value: Value, where: str) -> None:
    """Raise UseError where an experiment file names a file that is not beneath its folder."""
    field = BY_NAME[name]
    if field.kind is FieldKind.PROGRAMS and (
        paths := [word for word in field.words(str(value), where) if "/" in word]
    ):
        raise UseError(
            f"{where}: {name} = {value!r}: {paths[0]!r} is none of the system's programs",
            f"name those without a slash, or give the path yourself: --set {name}=PATH",
        )
    path = PurePath(str(value))
    if is_system_program(name, value):
        return
    if field.is_input and (path.is_absolute() or ".." in path.parts):
        raise _outside_error(name, value, where)


def input_files(settings: Mapping[str, Value], folder: Path, where: str) -> dict[str, Path]:
    """Return the files and folders of a case by their fields.

    `folder` is that of the experiment file, `where` names it. Raises UseError for a program that
    the system does not have.
    """
    return {
        name: found_program(str(value), f"{where}: {name} = ")
        if is_system_program(name, value)
        else folder / str(value)
        for name, value in settings.items()
        if BY_NAME[name].is_input and value and value not in BY_NAME[name].built_in
    }


def is_system_program(name: str, value: Value) -> bool:
    """Return whether a field names one of the system's programs, which everybody may read."""
    return BY_NAME[name].kind is FieldKind.PROGRAM and bool(value) and "/" not in str(value)


def check_inputs(case: Case, where: str) -> None:
    """Raise UseError for a file that is not there, or that a link leads out of the folder."""
    for name, path in case.inputs.items():
        value = case.settings[name]
        if is_system_program(name, value):
            continue
        kind = BY_NAME[name].kind
        is_folder = kind in (FieldKind.FOLDER, FieldKind.SOURCES)
        if is_folder and not path.is_dir():
            raise UseError(f"{where}: {name} = {value!r}: {path} is no folder", "name a folder")
        if name == "scripts" and not any(path.glob("transaction*.sql")):
            raise UseError(
                f"{where}: {name} = {value!r}: {path} has no transaction.sql and no "
                "transaction-NAME.sql",
                "add one; of a recording, name the folder that joj export --format sql wrote",
            )
        if not is_folder and not path.is_file():
            if kind is FieldKind.PROGRAM or not path.is_dir():
                what = "is no file" if kind is FieldKind.PROGRAM else "is no file or folder"
                raise UseError(f"{where}: {name} = {value!r}: {path} {what}", "name one")
            _check_recording(path, where)
        if Path(str(value)).is_absolute():
            continue  # of the command line
        folder = path.parents[len(PurePath(str(value)).parts) - 1]
        if not path.resolve().is_relative_to(folder.resolve()):
            raise _outside_error(name, value, where)


def _check_recording(folder: Path, where: str) -> None:
    Recording.open(folder).refuse_sql(where)


def _outside_error(name: str, value: Value, where: str) -> UseError:
    return UseError(
        f"{where}: {name} = {value!r} is not beneath the experiment's folder",
        f"copy the file there, or give it yourself: --set {name}=PATH",
    )


def recorded_settings(fields: Mapping[str, object]) -> tuple[dict[str, Value], str]:
    """Return the fields that the folder of scripts has, and that `fields` lack; and a sentence that
    says which they are, empty where the folder has none.

    Raises UseError for a file that is not as it should be.
    """
    path = Path(str(fields.get("scripts", ""))) / sql_settings.NAME
    if (
        fields.get("workload", SQL_RECORDED) not in with_group(SCRIPTS)
        or not fields.get("scripts")
        or not path.is_file()
    ):
        return {}, ""
    _, document = read_toml(path, "docs/own-sql.md has the form")
    found: dict[str, Value] = {}
    for name, value in document.items():
        if name not in sql_settings.CASE_FIELDS:
            raise UseError(
                f"{path}: {name} is none of the settings of SQLite that an app has",
                f"drop it; there are {', '.join(sql_settings.CASE_FIELDS)}",
            )
        found[name] = BY_NAME[name].check(value, str(path))
    recorded = {name: value for name, value in found.items() if name not in fields}
    words = ", ".join(f"{name}={value}" for name, value in recorded.items())
    note = f"settings of {path}: {words or 'none'}"
    if (name := sql_settings.UNRECORDED) not in {*fields, *found}:
        default = BY_NAME[name].default
        note += f"; {name} is not recorded: {default} is taken (joj inspect says what SQLite has)"
    if options := [
        f"{name}={fields[name]}"
        for name, value in found.items()
        if str(fields.get(name, value)) != str(value)
    ]:
        note += f"; by option, in the place of the recorded ones: {', '.join(options)}"
    return recorded, note
