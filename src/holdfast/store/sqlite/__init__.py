"""The store on SQLite: everything that only this engine needs."""
