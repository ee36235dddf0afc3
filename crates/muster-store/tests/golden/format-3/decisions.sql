CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
INSERT INTO meta (name,value) VALUES ('format','3');
INSERT INTO meta (name,value) VALUES ('inode','10174492');
INSERT INTO meta (name,value) VALUES ('mark','9666f3b12c5ba06810b66c1be6d63718');
CREATE TABLE leases (
    id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, owner TEXT NOT NULL, taken_at INTEGER NOT NULL
);
INSERT INTO leases (id,epoch,owner,taken_at) VALUES (0,1,'plane_01M8N4JQXMEHRB5V9STMXCA82B',1796005781428406);
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
, wait_cause INTEGER, wait_reference BLOB, wait_until INTEGER, resume_to INTEGER, on_parent_end INTEGER NOT NULL DEFAULT 0, replay TEXT, replay_of TEXT, restart_of TEXT, restarted_as TEXT, webhook BLOB);
INSERT INTO executions (n,id,run,root,parent,depth,kind,lane,agent,function,function_kind,status,status_reason,error_category,error_text,error_status,class,turn,seq,attempt,holds,over_cap,created_at,started_at,ended_at,active_us,clock_from,deadline_us,absorb_until,input_size,input_hash,result_size,key_hash,principal,session,actor,traceparent,usage,origin,late_outcome,wait_cause,wait_reference,wait_until,resume_to,on_parent_end,replay,replay_of,restart_of,restarted_as,webhook) VALUES (1,'exec_01M8N4JRCYEB9SNFX7B1JRV00F','run_gold',NULL,NULL,0,0,0,'gold','work',0,4,NULL,NULL,NULL,NULL,5,0,4,1,'gold',0,1796005781929501,1796005781929501,1796005782007058,77557,NULL,10800000000,NULL,8,X'BD7908D52B936830F2D4C5F6B48A5290',8,'bc8f676658f3d4460466e1d66090f62e','owner',X'73',X'61',NULL,X'7B22746F74616C5F636F73745F757364223A302E32352C22746F74616C5F696E7075745F746F6B656E73223A31302C22746F74616C5F6F75747075745F746F6B656E73223A352C22746F74616C5F746F6B656E73223A31352C22656E7472696573223A5B5D7D',1,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO executions (n,id,run,root,parent,depth,kind,lane,agent,function,function_kind,status,status_reason,error_category,error_text,error_status,class,turn,seq,attempt,holds,over_cap,created_at,started_at,ended_at,active_us,clock_from,deadline_us,absorb_until,input_size,input_hash,result_size,key_hash,principal,session,actor,traceparent,usage,origin,late_outcome,wait_cause,wait_reference,wait_until,resume_to,on_parent_end,replay,replay_of,restart_of,restarted_as,webhook) VALUES (2,'exec_01M8N4JRH0ESH9MFJGD8W20W4S','run_open',NULL,NULL,0,0,1,'gold','work',0,1,NULL,NULL,NULL,NULL,5,0,6,1,'gold',0,1796005782066911,1796005782066911,NULL,0,1796005782066911,10800000000,NULL,14,X'8ED171556824C6C5DEAA17AC99704F4B',NULL,'bc8f676658f3d4460466e1d66090f62e','owner',NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO executions (n,id,run,root,parent,depth,kind,lane,agent,function,function_kind,status,status_reason,error_category,error_text,error_status,class,turn,seq,attempt,holds,over_cap,created_at,started_at,ended_at,active_us,clock_from,deadline_us,absorb_until,input_size,input_hash,result_size,key_hash,principal,session,actor,traceparent,usage,origin,late_outcome,wait_cause,wait_reference,wait_until,resume_to,on_parent_end,replay,replay_of,restart_of,restarted_as,webhook) VALUES (3,'exec_01M8N4JRJ3EZX94EXF9SPJ9283','run_wait',NULL,NULL,0,0,1,'gold','work',0,3,X'706175736564',NULL,NULL,NULL,5,0,7,1,'gold',0,1796005782083660,1796005782083660,NULL,1017155,NULL,10800000000,NULL,11,X'52471529575908F4FFBB93B15E642F8D',NULL,'bc8f676658f3d4460466e1d66090f62e','owner',NULL,NULL,NULL,NULL,1,NULL,0,X'7265715F31',1796264983100815,2,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO executions (n,id,run,root,parent,depth,kind,lane,agent,function,function_kind,status,status_reason,error_category,error_text,error_status,class,turn,seq,attempt,holds,over_cap,created_at,started_at,ended_at,active_us,clock_from,deadline_us,absorb_until,input_size,input_hash,result_size,key_hash,principal,session,actor,traceparent,usage,origin,late_outcome,wait_cause,wait_reference,wait_until,resume_to,on_parent_end,replay,replay_of,restart_of,restarted_as,webhook) VALUES (4,'exec_01M8N4JSRKEC49901BT29V0TCG','run_queued',NULL,NULL,0,0,1,'gold','work',0,3,X'706175736564',NULL,NULL,NULL,5,1,12,0,NULL,0,1796005783318629,NULL,NULL,0,NULL,10800000000,NULL,16,X'D6C1D4D5F8575807DF1DC5446B2DFB40',NULL,'bc8f676658f3d4460466e1d66090f62e','owner',NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE queue_counts (
    agent TEXT NOT NULL, class INTEGER NOT NULL, turn INTEGER NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (agent, class, turn)
) WITHOUT ROWID;
CREATE TABLE attempts (
    execution INTEGER NOT NULL, n INTEGER NOT NULL, instance TEXT NOT NULL, candidates BLOB,
    secret_hash BLOB NOT NULL, sent_at INTEGER NOT NULL, accepted_at INTEGER, ended_at INTEGER,
    outcome INTEGER, evidence BLOB,
    PRIMARY KEY (execution, n)
) WITHOUT ROWID;
INSERT INTO attempts (execution,n,instance,candidates,secret_hash,sent_at,accepted_at,ended_at,outcome,evidence) VALUES (1,1,'one',NULL,X'DDB21788B7D210EE1A3356ED2F90E565',1796005781929501,NULL,1796005782007058,0,NULL);
INSERT INTO attempts (execution,n,instance,candidates,secret_hash,sent_at,accepted_at,ended_at,outcome,evidence) VALUES (2,1,'one',NULL,X'48A5F73C2589383CF33EDFE9FE75FBBA',1796005782066911,1796005782088855,NULL,NULL,NULL);
INSERT INTO attempts (execution,n,instance,candidates,secret_hash,sent_at,accepted_at,ended_at,outcome,evidence) VALUES (3,1,'one',NULL,X'8A10BBAA466F23EEED8C7639D525A90A',1796005782083660,1796005782088855,NULL,NULL,NULL);
CREATE TABLE payloads (
    slot INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL,
    owner INTEGER GENERATED ALWAYS AS (slot >> 2) VIRTUAL,
    kind INTEGER GENERATED ALWAYS AS (slot & 3) VIRTUAL,
    chunk INTEGER GENERATED ALWAYS AS (0) VIRTUAL
);
INSERT INTO payloads (slot,bytes) VALUES (4,X'7B226E223A20317D');
INSERT INTO payloads (slot,bytes) VALUES (5,X'7B226E223A20317D');
INSERT INTO payloads (slot,bytes) VALUES (8,X'7B2277616974223A20747275657D');
INSERT INTO payloads (slot,bytes) VALUES (12,X'7B2277616974223A20327D');
INSERT INTO payloads (slot,bytes) VALUES (16,X'7B22717565756564223A20747275657D');
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind INTEGER NOT NULL, execution TEXT,
    run TEXT, agent TEXT, function TEXT, instance TEXT, attempt INTEGER, status INTEGER,
    reason BLOB, category TEXT, text BLOB
, node TEXT, worker TEXT);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text,node,worker) VALUES (1,1796005781437606,60,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text,node,worker) VALUES (2,1796005781851250,30,NULL,NULL,'gold',NULL,'one',NULL,NULL,NULL,NULL,X'687474703A2F2F3132372E302E302E313A3138343536',NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text,node,worker) VALUES (3,1796005781915994,33,NULL,NULL,'gold',NULL,'one',NULL,NULL,NULL,NULL,X'6C617374206265617420302E3020732061676F',NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text,node,worker) VALUES (4,1796005781929501,2,'exec_01M8N4JRCYEB9SNFX7B1JRV00F','run_gold','gold','work','one',1,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text,node,worker) VALUES (5,1796005782007058,5,'exec_01M8N4JRCYEB9SNFX7B1JRV00F','run_gold','gold','work','one',1,4,NULL,NULL,NULL,NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text,node,worker) VALUES (6,1796005782066911,2,'exec_01M8N4JRH0ESH9MFJGD8W20W4S','run_open','gold','work','one',1,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text,node,worker) VALUES (7,1796005782083660,2,'exec_01M8N4JRJ3EZX94EXF9SPJ9283','run_wait','gold','work','one',1,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text,node,worker) VALUES (8,1796005783100815,16,'exec_01M8N4JRJ3EZX94EXF9SPJ9283','run_wait','gold',NULL,NULL,1,2,NULL,NULL,X'7265715F31',NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text,node,worker) VALUES (9,1796005783100815,11,'exec_01M8N4JRJ3EZX94EXF9SPJ9283','run_wait','gold','work','one',1,2,X'77616974696E675F666F725F617070726F76616C',NULL,X'7265715F31',NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text,node,worker) VALUES (10,1796005783138178,13,'exec_01M8N4JRJ3EZX94EXF9SPJ9283','run_wait','gold','work','one',1,3,X'706175736564',NULL,X'6279206F776E6572',NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text,node,worker) VALUES (11,1796005783232822,50,NULL,NULL,'gold',NULL,NULL,NULL,NULL,NULL,NULL,X'676F6C64656E',NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text,node,worker) VALUES (12,1796005783318629,1,'exec_01M8N4JSRKEC49901BT29V0TCG','run_queued','gold','work',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text,node,worker) VALUES (13,1796005783357947,21,'exec_01M8N4JSRKEC49901BT29V0TCG','run_queued',NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'6279206F776E6572',NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text,node,worker) VALUES (14,1796005783360166,13,'exec_01M8N4JSRKEC49901BT29V0TCG','run_queued','gold','work',NULL,NULL,3,X'706175736564',NULL,X'6279206F776E6572',NULL,NULL);
INSERT INTO events (seq,at,kind,execution,run,agent,function,instance,attempt,status,reason,category,text,node,worker) VALUES (15,1796005783507790,61,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE idempotency (
    key BLOB PRIMARY KEY, execution TEXT NOT NULL, body_hash BLOB NOT NULL, at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE runs (
    id TEXT PRIMARY KEY, root TEXT NOT NULL, cancelled_at INTEGER, cancelled_by BLOB
, paused_at INTEGER, paused_by BLOB, source TEXT) WITHOUT ROWID;
INSERT INTO runs (id,root,cancelled_at,cancelled_by,paused_at,paused_by,source) VALUES ('run_queued','exec_01M8N4JSRKEC49901BT29V0TCG',NULL,NULL,1796005783357947,X'6F776E6572',NULL);
CREATE TABLE agents (
    id TEXT PRIMARY KEY, principal TEXT NOT NULL, created_at INTEGER NOT NULL,
    registered_at INTEGER NOT NULL, held INTEGER NOT NULL, registration BLOB NOT NULL
, tags BLOB);
INSERT INTO agents (id,principal,created_at,registered_at,held,registration,tags) VALUES ('gold','owner',1796005781851250,1796005781851250,1,X'7B226964223A2022676F6C64222C2022626173655F75726C223A2022687474703A2F2F3132372E302E302E313A3138343536222C202276657273696F6E223A202231222C2022696E7374616E63655F6964223A20226F6E65222C2022726561736F6E657273223A205B7B226964223A2022776F726B222C2022696E7075745F736368656D61223A207B7D2C202274616773223A205B5D7D5D2C2022736B696C6C73223A205B5D7D',NULL);
CREATE TABLE instances (
    agent TEXT NOT NULL, id TEXT NOT NULL, base_url BLOB NOT NULL, version BLOB NOT NULL,
    functions BLOB NOT NULL, registered_at INTEGER NOT NULL, renewed_at INTEGER NOT NULL,
    goodbye_at INTEGER, gone_at INTEGER, gone_evidence BLOB, orphans_at INTEGER, worker BLOB,
    PRIMARY KEY (agent, id)
);
INSERT INTO instances (agent,id,base_url,version,functions,registered_at,renewed_at,goodbye_at,gone_at,gone_evidence,orphans_at,worker) VALUES ('gold','one',X'687474703A2F2F3132372E302E302E313A3138343536',X'31',X'5B7B226E616D65223A22776F726B222C226B696E64223A22726561736F6E6572222C226964656D706F74656E74223A66616C73657D5D',1796005781851250,1796005781851250,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE quarantine (
    id TEXT PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, about BLOB NOT NULL,
    error BLOB NOT NULL, what BLOB NOT NULL
);
CREATE TABLE keys (
    id TEXT PRIMARY KEY, prefix TEXT NOT NULL, hash BLOB NOT NULL, name BLOB NOT NULL,
    scopes BLOB NOT NULL, principal TEXT NOT NULL, created_at INTEGER NOT NULL, used_at INTEGER,
    revoked_at INTEGER, expires_at INTEGER
, detail BLOB);
INSERT INTO keys (id,prefix,hash,name,scopes,principal,created_at,used_at,revoked_at,expires_at,detail) VALUES ('key_01M8N4JQSFEZPTH9BZAYCBEDMB','mk_CCkndNrD',X'BC8F676658F3D4460466E1D66090F62EFC976E08B40C48B374832E9A5CAA023C',X'6F776E6572206B6579206F66207468652064617461206469726563746F7279',X'5B2261646D696E225D','owner',1796005781294570,NULL,NULL,NULL,NULL);
INSERT INTO keys (id,prefix,hash,name,scopes,principal,created_at,used_at,revoked_at,expires_at,detail) VALUES ('key_01M8N4JSKBEVESQQD9NZ8Z1CP0','mk_pd0b1pnB',X'C54D93ACB015BD02E3E7ECF9EF8A6641A691AE4091217328EDD6CB60A3DB1CD4',X'726561646572',X'5B2272656164225D','owner',1796005783147043,NULL,NULL,NULL,NULL);
CREATE TABLE audit (
    n INTEGER PRIMARY KEY, at INTEGER NOT NULL, principal BLOB NOT NULL, action BLOB NOT NULL,
    object BLOB NOT NULL, detail BLOB NOT NULL
);
INSERT INTO audit (n,at,principal,action,object,detail) VALUES (1,1796005781294570,X'6F776E6572',X'6B65792E63726561746564',X'6B65795F30314D384E344A515346455A50544839425A4159434245444D42',X'6F776E6572206B6579206F66207468652064617461206469726563746F72792C206D6164652061742073746172743B2073636F7065732061646D696E');
INSERT INTO audit (n,at,principal,action,object,detail) VALUES (2,1796005783147043,X'6F776E6572',X'6B65792E63726561746564',X'6B65795F30314D384E344A534B4245564553515144394E5A385A31435030',X'6D6B5F7064306231706E4220227265616465722220666F72206F776E65723B2073636F7065732072656164');
INSERT INTO audit (n,at,principal,action,object,detail) VALUES (3,1796005783246016,X'6F776E6572',X'686F6C642E736574',X'676F6C64',X'676F6C64656E');
CREATE TABLE identities (
    did TEXT PRIMARY KEY, agent TEXT NOT NULL, component TEXT NOT NULL, function TEXT NOT NULL,
    sealed_seed BLOB NOT NULL, created_at INTEGER NOT NULL
);
CREATE TABLE credentials (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, execution TEXT NOT NULL, run TEXT NOT NULL,
    created_at INTEGER NOT NULL, body BLOB NOT NULL
);
CREATE TABLE settings (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE approvals (
    execution TEXT NOT NULL, request TEXT NOT NULL, run TEXT NOT NULL, agent TEXT NOT NULL,
    attempt INTEGER NOT NULL, request_url BLOB, callback_url BLOB, requested_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL, decision INTEGER, decided_at INTEGER, decided_by BLOB,
    feedback BLOB, response BLOB, told BLOB,
    PRIMARY KEY (execution, request)
) WITHOUT ROWID;
INSERT INTO approvals (execution,request,run,agent,attempt,request_url,callback_url,requested_at,expires_at,decision,decided_at,decided_by,feedback,response,told) VALUES ('exec_01M8N4JRJ3EZX94EXF9SPJ9283','req_1','run_wait','gold',1,X'687474703A2F2F3132372E302E302E313A312F78',NULL,1796005783100815,1796264983100815,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE webhook_outbox (
    seq INTEGER PRIMARY KEY, execution TEXT NOT NULL, run TEXT NOT NULL, status INTEGER NOT NULL,
    at INTEGER NOT NULL, webhook BLOB NOT NULL, target TEXT NOT NULL, since INTEGER NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0, next_at INTEGER, claim TEXT, tried_at INTEGER,
    delivered_at INTEGER, dead_at INTEGER, last_error BLOB, last_status INTEGER
);
CREATE TABLE nodes (
    id TEXT PRIMARY KEY, name BLOB NOT NULL, kind TEXT NOT NULL, wish TEXT NOT NULL,
    state TEXT NOT NULL, state_at INTEGER NOT NULL, enrolled_at INTEGER NOT NULL,
    connected_at INTEGER, heard_at INTEGER, principal BLOB NOT NULL, detail TEXT NOT NULL
);
CREATE TABLE workers (
    id TEXT PRIMARY KEY, name BLOB NOT NULL, node TEXT, state TEXT NOT NULL,
    state_at INTEGER NOT NULL, created_at INTEGER NOT NULL, confirmed_at INTEGER,
    ended_at INTEGER, ended_how TEXT, agent TEXT, principal BLOB NOT NULL,
    idempotency_key BLOB, detail TEXT NOT NULL, spec BLOB NOT NULL
);
CREATE TABLE fleet_history (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, node TEXT, worker TEXT, kind TEXT NOT NULL,
    before BLOB, after BLOB, evidence BLOB NOT NULL
);
CREATE TABLE relay (
    kind TEXT NOT NULL, name BLOB NOT NULL, node BLOB, value BLOB NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
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
CREATE INDEX runs_source ON runs (source) WHERE source IS NOT NULL;
CREATE INDEX executions_equal ON executions (parent, input_hash) WHERE parent IS NOT NULL;
CREATE INDEX executions_twin ON executions (replay_of) WHERE replay_of IS NOT NULL;
CREATE INDEX executions_bereaved ON executions (parent)
    WHERE status = 0 AND on_parent_end = 1;
CREATE INDEX approvals_request ON approvals (request);
CREATE INDEX approvals_time ON approvals (requested_at, execution);
CREATE INDEX approvals_run ON approvals (run);
CREATE INDEX approvals_open ON approvals (expires_at)
    WHERE decided_at IS NULL OR (told IS NULL AND decision IS NOT NULL);
CREATE INDEX webhook_outbox_due ON webhook_outbox (target, next_at, seq)
    WHERE next_at IS NOT NULL;
CREATE INDEX webhook_outbox_delivered ON webhook_outbox (delivered_at)
    WHERE delivered_at IS NOT NULL;
CREATE INDEX webhook_outbox_dead ON webhook_outbox (dead_at) WHERE dead_at IS NOT NULL;
CREATE INDEX webhook_outbox_execution ON webhook_outbox (execution);
CREATE INDEX events_worker ON events (worker) WHERE worker IS NOT NULL;
CREATE INDEX events_node ON events (node) WHERE node IS NOT NULL;
CREATE INDEX workers_time ON workers (created_at, id);
CREATE INDEX workers_node ON workers (node, created_at, id);
CREATE INDEX workers_name ON workers (name, created_at, id);
CREATE INDEX workers_living ON workers (created_at, id) WHERE ended_at IS NULL;
CREATE INDEX workers_ended ON workers (ended_at) WHERE ended_at IS NOT NULL;
CREATE UNIQUE INDEX workers_key ON workers (idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX fleet_history_node ON fleet_history (node, seq) WHERE node IS NOT NULL;
CREATE INDEX fleet_history_worker ON fleet_history (worker, seq) WHERE worker IS NOT NULL;
CREATE INDEX relay_time ON relay (kind, updated_at);
PRAGMA user_version = 3;
