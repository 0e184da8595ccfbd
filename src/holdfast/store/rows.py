"""Changes to rows as values: what is inserted, updated or deleted, and with which values. An engine may run them one by one, or gather
those of one form into one statement.
"""

from typing import Any


class Form:
    """All changes of one form have the same statement. `into`: the field of the head that takes over what the statement returns."""

    __slots__ = ("into", "sql", "table")

    def __init__(self, table: str, sql: str, into: str | None = None) -> None:
        self.table, self.sql, self.into = table, sql, into


class Insert(Form):
    """`conflict`: what happens where a row of the same key is there, in the words of ON CONFLICT."""

    __slots__ = ()

    def __init__(self, table: str, *columns: str, conflict: str | None = None) -> None:
        end = f" ON CONFLICT {conflict}" if conflict else ""
        super().__init__(table, f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}){end}")


class Update(Form):
    """The values of the columns come first, then those that `where` asks for."""

    __slots__ = ()

    def __init__(self, table: str, *columns: str, where: str) -> None:
        named = ", ".join(column if "=" in column else f"{column} = ?" for column in columns)
        super().__init__(table, f"UPDATE {table} SET {named} WHERE {where}")


class Delete(Form):
    __slots__ = ()

    def __init__(self, table: str, *, where: str, returning: str | None = None, into: str | None = None) -> None:
        end = f" RETURNING {returning}" if returning else ""
        super().__init__(table, f"DELETE FROM {table} WHERE {where}{end}", into)


Change = tuple[Form, tuple[Any, ...]]
