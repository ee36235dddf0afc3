CREATE TABLE logs (
    execution TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, level BLOB NOT NULL,
    source BLOB NOT NULL, event_type BLOB NOT NULL, message BLOB NOT NULL,
    attributes BLOB NOT NULL, debug INTEGER NOT NULL, size INTEGER NOT NULL,
    PRIMARY KEY (execution, seq)
) WITHOUT ROWID;
CREATE TABLE log_totals (
    execution TEXT PRIMARY KEY, next INTEGER NOT NULL, lines INTEGER NOT NULL,
    bytes INTEGER NOT NULL, dropped INTEGER NOT NULL, written_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE notes (
    n INTEGER PRIMARY KEY, execution TEXT NOT NULL, run TEXT, agent BLOB, message BLOB NOT NULL,
    tags BLOB NOT NULL, at INTEGER NOT NULL
);
CREATE INDEX logs_debug ON logs (execution, seq) WHERE debug = 1;
CREATE INDEX log_totals_at ON log_totals (written_at);
CREATE INDEX notes_execution ON notes (execution, n);
PRAGMA user_version = 1;
