# SPDX-License-Identifier: MIT
"""The database of the examples: slow, and it remembers who asked. SQLite, so that several processes can share it."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from datetime import datetime
from typing import Any, Optional


class Shop:
    def __init__(self, path: str, seconds: float = 0.3) -> None:
        self.path = path
        self.seconds = seconds  # what a query takes
        self._run("CREATE TABLE IF NOT EXISTS products (id INTEGER PRIMARY KEY, name TEXT)")
        self._run("CREATE TABLE IF NOT EXISTS queries (id INTEGER)")
        self._run("CREATE TABLE IF NOT EXISTS reports (slot TEXT)")
        self._run("INSERT OR IGNORE INTO products VALUES (42, 'umbrella')")

    def product(self, id: int) -> Optional[dict[str, Any]]:
        """The query that a crowd must not reach."""
        self._run("INSERT INTO queries VALUES (?)", id)
        time.sleep(self.seconds)
        rows = self._run("SELECT id, name FROM products WHERE id = ?", id)
        return {"id": rows[0][0], "name": rows[0][1]} if rows else None

    def rename(self, id: int, name: str) -> None:
        self._run("UPDATE products SET name = ? WHERE id = ?", name, id)

    def write_report(self, slot: datetime) -> None:
        """The work of a night."""
        self._run("INSERT INTO reports VALUES (?)", slot.isoformat())

    def queries(self) -> int:
        return int(self._run("SELECT count(*) FROM queries")[0][0])

    def reports(self) -> list[str]:
        return [slot for (slot,) in self._run("SELECT slot FROM reports")]

    def _run(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path, timeout=30)) as database, database:
            return database.execute(text, values).fetchall()
