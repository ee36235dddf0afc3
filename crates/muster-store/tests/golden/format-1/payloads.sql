CREATE TABLE payloads (
    owner TEXT NOT NULL, kind INTEGER NOT NULL, chunk INTEGER NOT NULL, bytes BLOB NOT NULL,
    at INTEGER NOT NULL, settled INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (owner, kind, chunk)
);
INSERT INTO payloads (owner,kind,chunk,bytes,at,settled) VALUES ('exec_01M8MR8B3ZEA0VRFK5420QG42Q',1,0,CAST('"' || printf('%.*c', 70000, 'x') || '"' AS BLOB),1795992857735699,0);
CREATE TABLE memory (
    scope TEXT NOT NULL, scope_id TEXT NOT NULL, key TEXT NOT NULL, data BLOB NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    PRIMARY KEY (scope, scope_id, key)
);
INSERT INTO memory (scope,scope_id,key,data,created_at,updated_at) VALUES ('global','global','k',X'7b2276223a317d',1795992857784266,1795992857784266);
CREATE TABLE memory_events (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL, at INTEGER NOT NULL, scope TEXT NOT NULL,
    scope_id TEXT NOT NULL, key TEXT NOT NULL, deleted INTEGER NOT NULL, data BLOB,
    previous BLOB, agent BLOB, actor BLOB, workflow BLOB
);
INSERT INTO memory_events (seq,id,at,scope,scope_id,key,deleted,data,previous,agent,actor,workflow) VALUES (1,'mev_01M8MR8B5REWXRXEFJDTAA2XKY',1795992857784266,'global','global','k',0,X'7b2276223a317d',NULL,NULL,NULL,NULL);
CREATE INDEX payloads_unsettled ON payloads (at) WHERE settled = 0 AND chunk = 0;
PRAGMA user_version = 1;
