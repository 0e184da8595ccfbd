-- From schema 8 to 9. Nothing that a program of schema 8 reads or writes changes, so one may still run next to this.

-- Where models were given a summary of what came earlier.
CREATE INDEX event_compacted ON event (session, seq) WHERE kind = 'context.compacted';
