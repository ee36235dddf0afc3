"""Looks into the plane's SQLite files, read-only, to check what was and was not written."""

import sqlite3
from pathlib import Path


class StoreReader:
    """Reads the file that holds the decisions, beside the running plane."""

    def __init__(self, data):
        self.data = Path(data)

    def _file(self):
        for path in sorted(self.data.rglob("*")):
            if path.is_file() and path.read_bytes()[:15] == b"SQLite format 3":
                with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
                    found = db.execute(
                        "select 1 from sqlite_master where name = 'executions'"
                    ).fetchone()
                if found:
                    return path
        raise AssertionError(f"no SQLite file with executions under {self.data}")

    def rows(self, query, *values):
        """The rows of a query, as dictionaries."""
        db = sqlite3.connect(f"file:{self._file()}?mode=ro", uri=True, timeout=10)
        try:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(query, values)]
        finally:
            db.close()

    def count(self, table):
        return self.rows(f"select count(*) as n from {table}")[0]["n"]

    def executions(self):
        """Every execution row, by id."""
        return {row["id"]: row for row in self.rows("select * from executions_shown")}
