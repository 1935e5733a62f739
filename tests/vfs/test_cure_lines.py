"""The lines of docs/cure.md that an app pastes: each keeps and fills the WAL of its database."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.vfs.programs import SOURCE, build

PAGE = SOURCE.parent / "docs/cure.md"
FIRST_STEP_BYTES = 64 << 10
STATEMENTS = ("PRAGMA journal_mode = wal", "CREATE TABLE t(x)")
C_PROGRAM = """
#include <stddef.h>
#include <sqlite3.h>

int main(void)
{
	sqlite3 *loader, *app;

	%s
	sqlite3_exec(app, "%s", NULL, NULL, NULL);
	return sqlite3_close(app);
}
"""


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vfs")
    for name in ("joj_wal", "joj_wal_preload"):
        build(SOURCE, folder, name)
    return folder


@pytest.mark.parametrize("language", ["python", "sh", "c"])
def test_lines_keep_and_fill_the_wal(language: str, libraries: Path, tmp_path: Path) -> None:
    [lines] = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    lines = lines.replace("/path", str(libraries))
    if language == "python":
        calls = "".join(f"app.execute({each!r})\n" for each in STATEMENTS)
        # Debian's: a Python of one's own may be built without loading extensions.
        command = ["/usr/bin/python3", "-c", f"{lines}{calls}"]
    elif language == "sh":
        command = ["sh", "-ec", lines]
    else:
        (tmp_path / "app.c").write_text(C_PROGRAM % (lines, "; ".join(STATEMENTS)))
        command = ["gcc", "-Wall", "-Werror", "app.c", "-o", "app", "-lsqlite3"]
        subprocess.run(command, cwd=tmp_path, check=True)
        command = ["./app"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "app.db-wal").stat().st_size == FIRST_STEP_BYTES
