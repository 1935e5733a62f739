from pathlib import Path

import pytest

from jojlab.foundation.errors import MachineError
from jojlab.foundation.places import SCHEMA
from jojlab.trace import schema

EVERY = (*schema.TABLES, *(f"fleet/{table}" for table in schema.FLEET_TABLES))


def test_every_schema_is_read() -> None:
    for table in EVERY:
        columns = schema.table_schema(table).columns
        assert columns
        assert len({c.name for c in columns}) == len(columns)
        assert all(c.meaning for c in columns)


def test_units_stand_in_the_names() -> None:
    for table in EVERY:
        for column in schema.table_schema(table).columns:
            if column.unit in ("ns", "ms", "s", "bytes"):
                assert column.name.endswith(f"_{column.unit}"), column.name


def test_every_file_of_the_schema_is_a_table() -> None:
    files = {path.stem for path in SCHEMA.glob("*.toml")}
    assert files - {"file_kinds"} == set(schema.TABLES)  # that one is names' table of kinds
    assert {path.stem for path in (SCHEMA / "fleet").glob("*")} == set(schema.FLEET_TABLES)


def test_a_malformed_schema_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.toml").write_text('table = "bad"\n[[column]]\nname = "x"\n')
    monkeypatch.setattr(schema, "SCHEMA", tmp_path)
    with pytest.raises(MachineError, match=r"bad\.toml"):
        schema.table_schema("bad")
    with pytest.raises(MachineError, match=r"absent\.toml"):
        schema.table_schema("absent")
