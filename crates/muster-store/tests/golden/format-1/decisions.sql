CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
INSERT INTO meta (name,value) VALUES ('format','1');
INSERT INTO meta (name,value) VALUES ('inode','10854556');
INSERT INTO meta (name,value) VALUES ('mark','0b0822138a5362570e0971ea88667d56');
CREATE TABLE leases (
    id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, owner TEXT NOT NULL, taken_at INTEGER NOT NULL
);
INSERT INTO leases (id,epoch,owner,taken_at) VALUES (0,1,'plane_01M8MR8A46EEYRW1W2EJXKMAX8',1795992856710293);
CREATE TABLE executions (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL, run TEXT NOT NULL, root TEXT, parent TEXT, depth INTEGER NOT NULL,
    kind INTEGER NOT NULL, lane INTEGER NOT NULL, agent TEXT NOT NULL, function TEXT NOT NULL,
    function_kind INTEGER NOT NULL, status INTEGER NOT NULL, status_reason BLOB,
    error_category TEXT, error_text BLOB, error_status INTEGER,
    class INTEGER NOT NULL, turn INTEGER NOT NULL, seq INTEGER NOT NULL,
    attempt INTEGER NOT NULL, holds TEXT, over_cap INTEGER NOT NULL,
    created_at INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER,
    active_us INTEGER NOT NULL, clock_from INTEGER, deadline_us INTEGER NOT NULL,
    absorb_until INTEGER, input_size INTEGER NOT NULL, input_hash BLOB NOT NULL,
    result_size INTEGER, key_hash TEXT, principal TEXT NOT NULL, session BLOB, actor BLOB,
    traceparent BLOB, usage BLOB, origin INTEGER NOT NULL, late_outcome INTEGER
);
INSERT INTO executions (n,id,run,root,parent,depth,kind,lane,agent,function,function_kind,status,status_reason,error_category,error_text,error_status,class,turn,seq,attempt,holds,over_cap,created_at,started_at,ended_at,active_us,clock_from,deadline_us,absorb_until,input_size,input_hash,result_size,key_hash,principal,session,actor,traceparent,usage,origin,late_outcome) VALUES (1,'exec_01M8MR8B2MEPQAEXWBYM3PE5JM','run_gold',NULL,NULL,0,0,0,'gold','echo',0,4,NULL,NULL,NULL,NULL,5,0,3,1,'gold',0,1795992857685050,1795992857685050,1795992857699115,14065,NULL,10800000000,NULL,7,X'683493a71b835d3180298e3335efceb7',7,NULL,'owner',NULL,NULL,NULL,NULL,1,NULL);
INSERT INTO executions (n,id,run,root,parent,depth,kind,lane,agent,function,function_kind,status,status_reason,error_category,error_text,error_status,class,turn,seq,attempt,holds,over_cap,created_at,started_at,ended_at,active_us,clock_from,deadline_us,absorb_until,input_size,input_hash,result_size,key_hash,principal,session,actor,traceparent,usage,origin,late_outcome) VALUES (2,'exec_01M8MR8B3DES89CJWGRBBJ6MC7','run_gold2',NULL,NULL,0,0,0,'gold','boom',0,5,X'6167656e745f6572726f72','agent_error',X'746865206167656e7420616e737765726564203530303a206b61707574',502,5,0,5,1,'gold',0,1795992857709194,1795992857709194,1795992857712804,3610,NULL,10800000000,NULL,2,X'dd0fcb9bb51db99aff5505212577b928',NULL,NULL,'owner',NULL,NULL,NULL,NULL,1,NULL);
INSERT INTO executions (n,id,run,root,parent,depth,kind,lane,agent,function,function_kind,status,status_reason,error_category,error_text,error_status,class,turn,seq,attempt,holds,over_cap,created_at,started_at,ended_at,active_us,clock_from,deadline_us,absorb_until,input_size,input_hash,result_size,key_hash,principal,session,actor,traceparent,usage,origin,late_outcome) VALUES (3,'exec_01M8MR8B3ZEA0VRFK5420QG42Q','run_01M8MR8B3ZEA0VRFK546Q9N5D0',NULL,NULL,0,0,0,'gold','large',0,4,NULL,NULL,NULL,NULL,5,0,7,1,'gold',0,1795992857727320,1795992857727320,1795992857737291,9971,NULL,10800000000,NULL,2,X'4fc8c14ae7b2c8224e15f797eca9c066',70002,NULL,'owner',NULL,NULL,NULL,NULL,1,NULL);
INSERT INTO executions (n,id,run,root,parent,depth,kind,lane,agent,function,function_kind,status,status_reason,error_category,error_text,error_status,class,turn,seq,attempt,holds,over_cap,created_at,started_at,ended_at,active_us,clock_from,deadline_us,absorb_until,input_size,input_hash,result_size,key_hash,principal,session,actor,traceparent,usage,origin,late_outcome) VALUES (4,'exec_01M8MR8B4NEPP8JS6PZ303Z0YT','run_open',NULL,NULL,0,0,1,'gold','never',0,1,NULL,NULL,NULL,NULL,5,0,9,1,'gold',0,1795992857749485,1795992857749485,NULL,0,1795992857749485,10800000000,NULL,13,X'601084da686d8ed5dfd89b6d21615f87',NULL,NULL,'owner',NULL,NULL,NULL,NULL,1,NULL);
INSERT INTO executions (n,id,run,root,parent,depth,kind,lane,agent,function,function_kind,status,status_reason,error_category,error_text,error_status,class,turn,seq,attempt,holds,over_cap,created_at,started_at,ended_at,active_us,clock_from,deadline_us,absorb_until,input_size,input_hash,result_size,key_hash,principal,session,actor,traceparent,usage,origin,late_outcome) VALUES (5,'exec_01M8MR8B5HEZDR0QTYT0JZSAR0','run_queued',NULL,NULL,0,0,1,'gold','echo',0,0,NULL,NULL,NULL,NULL,5,1,11,0,NULL,0,1795992857777360,NULL,NULL,0,NULL,10800000000,NULL,15,X'835d17a6904c6044ae5ef170d4feb635',NULL,NULL,'owner',NULL,NULL,NULL,NULL,1,NULL);
CREATE TABLE queue_counts (
    agent TEXT NOT NULL, class INTEGER NOT NULL, turn INTEGER NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (agent, class, turn)
) WITHOUT ROWID;
INSERT INTO queue_counts (agent,class,turn,count) VALUES ('gold',5,1,1);
CREATE TABLE attempts (
    execution INTEGER NOT NULL, n INTEGER NOT NULL, instance TEXT NOT NULL, candidates BLOB,
    secret_hash BLOB NOT NULL, sent_at INTEGER NOT NULL, accepted_at INTEGER, ended_at INTEGER,
    outcome INTEGER, evidence BLOB,
    PRIMARY KEY (execution, n)
) WITHOUT ROWID;
INSERT INTO attempts (execution,n,instance,candidates,secret_hash,sent_at,accepted_at,ended_at,outcome,evidence) VALUES (1,1,'one',NULL,X'cc6f1feacf47fc8a04f2bedc7ec16c6a',1795992857685050,NULL,1795992857699115,0,NULL);
INSERT INTO attempts (execution,n,instance,candidates,secret_hash,sent_at,accepted_at,ended_at,outcome,evidence) VALUES (2,1,'one',NULL,X'c5879398f1841757d6a4199c85d94af2',1795992857709194,NULL,1795992857712804,0,NULL);
INSERT INTO attempts (execution,n,instance,candidates,secret_hash,sent_at,accepted_at,ended_at,outcome,evidence) VALUES (3,1,'one',NULL,X'664c6de0d1210a6591bf72f11f60a89b',1795992857727320,NULL,1795992857737291,0,NULL);
INSERT INTO attempts (execution,n,instance,candidates,secret_hash,sent_at,accepted_at,ended_at,outcome,evidence) VALUES (4,1,'one',NULL,X'd153880983ecfeb8bdaee5dcedd909b4',1795992857749485,1795992857751258,NULL,NULL,NULL);
CREATE TABLE payloads (
    slot INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL,
    owner INTEGER GENERATED ALWAYS AS (slot >> 2) VIRTUAL,
    kind INTEGER GENERATED ALWAYS AS (slot & 3) VIRTUAL,
    chunk INTEGER GENERATED ALWAYS AS (0) VIRTUAL
);
INSERT INTO payloads (slot,bytes) VALUES (4,X'7b226e223a317d');
INSERT INTO payloads (slot,bytes) VALUES (5,X'7b226e223a317d');
INSERT INTO payloads (slot,bytes) VALUES (8,X'7b7d');
INSERT INTO payloads (slot,bytes) VALUES (12,X'7b7d');
INSERT INTO payloads (slot,bytes) VALUES (16,X'7b2277616974223a747275657d');
INSERT INTO payloads (slot,bytes) VALUES (20,X'7b22717565756564223a747275657d');
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind INTEGER NOT NULL, execution TEXT,
    run TEXT, agent TEXT, function TEXT, instance TEXT, attempt INTEGER, status INTEGER,
    reason BLOB, category TEXT, text BLOB
);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text) VALUES (1,1795992856720489,60,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text) VALUES (2,1795992857670154,30,NULL,NULL,'gold',NULL,'one',NULL,NULL,NULL,NULL,X'687474703a2f2f3132372e302e302e313a3138393931');
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text) VALUES (3,1795992857685050,2,'exec_01M8MR8B2MEPQAEXWBYM3PE5JM','run_gold','gold','echo','one',1,1,NULL,NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text) VALUES (4,1795992857699115,5,'exec_01M8MR8B2MEPQAEXWBYM3PE5JM','run_gold','gold','echo','one',1,4,NULL,NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text) VALUES (5,1795992857709194,2,'exec_01M8MR8B3DES89CJWGRBBJ6MC7','run_gold2','gold','boom','one',1,1,NULL,NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text) VALUES (6,1795992857712804,6,'exec_01M8MR8B3DES89CJWGRBBJ6MC7','run_gold2','gold','boom','one',1,5,X'6167656e745f6572726f72','agent_error',NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text) VALUES (7,1795992857727320,2,'exec_01M8MR8B3ZEA0VRFK5420QG42Q','run_01M8MR8B3ZEA0VRFK546Q9N5D0','gold','large','one',1,1,NULL,NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text) VALUES (8,1795992857737291,5,'exec_01M8MR8B3ZEA0VRFK5420QG42Q','run_01M8MR8B3ZEA0VRFK546Q9N5D0','gold','large','one',1,4,NULL,NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text) VALUES (9,1795992857749485,2,'exec_01M8MR8B4NEPP8JS6PZ303Z0YT','run_open','gold','never','one',1,1,NULL,NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text) VALUES (10,1795992857766368,50,NULL,NULL,'gold',NULL,NULL,NULL,NULL,NULL,NULL,X'676f6c64656e');
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text) VALUES (11,1795992857777360,1,'exec_01M8MR8B5HEZDR0QTYT0JZSAR0','run_queued','gold','echo',NULL,NULL,0,NULL,NULL,NULL);
CREATE TABLE idempotency (
    key BLOB PRIMARY KEY, execution TEXT NOT NULL, body_hash BLOB NOT NULL, at INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO idempotency (key,execution,body_hash,at) VALUES (X'6f776e6572006b31','exec_01M8MR8B2MEPQAEXWBYM3PE5JM',X'683493a71b835d3180298e3335efceb7',1795992857685050);
CREATE TABLE runs (
    id TEXT PRIMARY KEY, root TEXT NOT NULL, cancelled_at INTEGER, cancelled_by BLOB
) WITHOUT ROWID;
CREATE TABLE agents (
    id TEXT PRIMARY KEY, principal TEXT NOT NULL, created_at INTEGER NOT NULL,
    registered_at INTEGER NOT NULL, held INTEGER NOT NULL, registration BLOB NOT NULL
);
INSERT INTO agents (id,principal,created_at,registered_at,held,registration) VALUES ('gold','owner',1795992857670154,1795992857670154,1,X'7b226964223a22676f6c64222c22626173655f75726c223a22687474703a2f2f3132372e302e302e313a3138393931222c2276657273696f6e223a22312e302e30222c22696e7374616e63655f6964223a226f6e65222c22726561736f6e657273223a5b7b226964223a226563686f227d2c7b226964223a226e65766572227d2c7b226964223a22626f6f6d227d2c7b226964223a226c61726765227d5d2c22736b696c6c73223a5b7b226964223a22616464227d5d7d');
CREATE TABLE instances (
    agent TEXT NOT NULL, id TEXT NOT NULL, base_url BLOB NOT NULL, version BLOB NOT NULL,
    functions BLOB NOT NULL, registered_at INTEGER NOT NULL, renewed_at INTEGER NOT NULL,
    goodbye_at INTEGER, gone_at INTEGER, gone_evidence BLOB, orphans_at INTEGER, worker BLOB,
    PRIMARY KEY (agent, id)
);
INSERT INTO instances (agent,id,base_url,version,functions,registered_at,renewed_at,goodbye_at,gone_at,gone_evidence,orphans_at,worker) VALUES ('gold','one',X'687474703a2f2f3132372e302e302e313a3138393931',X'312e302e30',X'5b7b226e616d65223a226563686f222c226b696e64223a22726561736f6e6572222c226964656d706f74656e74223a66616c73657d2c7b226e616d65223a226e65766572222c226b696e64223a22726561736f6e6572222c226964656d706f74656e74223a66616c73657d2c7b226e616d65223a22626f6f6d222c226b696e64223a22726561736f6e6572222c226964656d706f74656e74223a66616c73657d2c7b226e616d65223a226c61726765222c226b696e64223a22726561736f6e6572222c226964656d706f74656e74223a66616c73657d2c7b226e616d65223a22616464222c226b696e64223a22736b696c6c222c226964656d706f74656e74223a66616c73657d5d',1795992857670154,1795992857670154,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE quarantine (
    id TEXT PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, about BLOB NOT NULL,
    error BLOB NOT NULL, what BLOB NOT NULL
);
CREATE TABLE keys (
    id TEXT PRIMARY KEY, prefix TEXT NOT NULL, hash BLOB NOT NULL, name BLOB NOT NULL,
    scopes BLOB NOT NULL, principal TEXT NOT NULL, created_at INTEGER NOT NULL, used_at INTEGER,
    revoked_at INTEGER, expires_at INTEGER
);
CREATE TABLE audit (
    n INTEGER PRIMARY KEY, at INTEGER NOT NULL, principal BLOB NOT NULL, action BLOB NOT NULL,
    object BLOB NOT NULL, detail BLOB NOT NULL
);
CREATE TABLE identities (
    did TEXT PRIMARY KEY, agent TEXT NOT NULL, component TEXT NOT NULL, function TEXT NOT NULL,
    sealed_seed BLOB NOT NULL, created_at INTEGER NOT NULL
);
CREATE TABLE credentials (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, execution TEXT NOT NULL, run TEXT NOT NULL,
    created_at INTEGER NOT NULL, body BLOB NOT NULL
);
CREATE TABLE settings (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE UNIQUE INDEX executions_id ON executions (id);
CREATE INDEX executions_run ON executions (run);
CREATE INDEX executions_agent ON executions (agent, created_at, id);
CREATE INDEX executions_roots ON executions (created_at, id) WHERE root IS NULL;
CREATE INDEX executions_members ON executions (created_at, id) WHERE root IS NOT NULL;
CREATE INDEX executions_parent ON executions (parent, created_at, id) WHERE parent IS NOT NULL;
CREATE INDEX executions_open ON executions (status, run, agent, turn) WHERE status < 4;
CREATE INDEX executions_queue ON executions (agent, class, turn, seq) WHERE status = 0;
CREATE INDEX executions_bad ON executions (created_at, id) WHERE status > 4;
CREATE INDEX events_execution ON events (execution) WHERE execution IS NOT NULL;
CREATE INDEX idempotency_at ON idempotency (at);
CREATE INDEX instances_gone ON instances (gone_at) WHERE gone_at IS NOT NULL;
CREATE INDEX quarantine_at ON quarantine (at, id);
CREATE INDEX audit_at ON audit (at);
CREATE UNIQUE INDEX identities_agent ON identities (agent, component, function);
CREATE INDEX credentials_run ON credentials (run, created_at);
PRAGMA user_version = 1;
