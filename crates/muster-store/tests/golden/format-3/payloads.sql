CREATE TABLE payloads (
    owner TEXT NOT NULL, kind INTEGER NOT NULL, chunk INTEGER NOT NULL, bytes BLOB NOT NULL,
    at INTEGER NOT NULL, settled INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (owner, kind, chunk)
);
CREATE TABLE memory (
    scope TEXT NOT NULL, scope_id TEXT NOT NULL, key TEXT NOT NULL, data BLOB NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    PRIMARY KEY (scope, scope_id, key)
);
INSERT INTO memory (scope,scope_id,key,data,created_at,updated_at) VALUES ('global','global','k',X'7b2276223a20327d',1796005783386005,1796005783386005);
CREATE TABLE memory_events (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL, at INTEGER NOT NULL, scope TEXT NOT NULL,
    scope_id TEXT NOT NULL, key TEXT NOT NULL, deleted INTEGER NOT NULL, data BLOB,
    previous BLOB, agent BLOB, actor BLOB, workflow BLOB
);
INSERT INTO memory_events (seq,id,at,scope,scope_id,key,deleted,data,previous,agent,actor,workflow) VALUES (1,'mev_01M8N4JSW6EN9A89JG1GW33A15',1796005783386005,'global','global','k',0,X'7b2276223a20327d',NULL,NULL,NULL,NULL);
CREATE INDEX payloads_unsettled ON payloads (at) WHERE settled = 0 AND chunk = 0;
CREATE INDEX payloads_settled ON payloads (at) WHERE settled = 1 AND chunk = 0;
PRAGMA user_version = 2;
