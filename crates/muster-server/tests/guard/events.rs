//! The event stream, and the hold that shows on it.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::agent::Agent;
use crate::support::{World, wire};

/// One message of a stream.
#[derive(Debug, Clone, PartialEq)]
struct Message {
    name: String,
    id: Option<String>,
    data: Value,
}

/// An open stream.
struct Stream {
    socket: TcpStream,
    text: String,
}

impl Stream {
    async fn open(world: &World, path: &str, last: Option<&str>) -> Self {
        let mut socket = TcpStream::connect(world.plane.address).await.unwrap();
        let last = last.map_or_else(String::new, |id| format!("Last-Event-ID: {id}\r\n"));
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{last}\r\n"
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut stream = Self {
            socket,
            text: String::new(),
        };
        stream.until(": connected\n\n").await;
        stream
    }

    async fn read(&mut self) -> bool {
        let mut piece = vec![0; 64 * 1024];
        let n = timeout(wire::DEADLINE, self.socket.read(&mut piece))
            .await
            .expect("something in time")
            .unwrap_or(0);
        // Chunk sizes stand on lines of their own and are no fields.
        self.text
            .push_str(&String::from_utf8_lossy(&piece[..n]).replace("\r\n", "\n"));
        n > 0
    }

    async fn until(&mut self, what: &str) {
        while !self.text.contains(what) {
            assert!(
                self.read().await,
                "the stream ended before {what:?}: {}",
                self.text
            );
        }
        let at = self.text.find(what).unwrap() + what.len();
        self.text.drain(..at);
    }

    /// The next message that is no sign of life; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Message> {
        loop {
            let message = self.any().await?;
            if message.name != "tick" {
                return Some(message);
            }
        }
    }

    /// The next message; `None` at the end of the stream.
    async fn any(&mut self) -> Option<Message> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| {
                    block
                        .lines()
                        .find_map(|line| line.strip_prefix(name))
                        .map(|value| value.trim().to_owned())
                };
                let Some(data) = field("data:") else { continue };
                return Some(Message {
                    name: field("event:").unwrap_or_default(),
                    id: field("id:"),
                    data: serde_json::from_str(&data).unwrap_or_else(|e| panic!("{e}: {data}")),
                });
            }
            if !self.read().await {
                return None;
            }
        }
    }

    async fn kinds(&mut self, n: usize) -> Vec<String> {
        let mut kinds = Vec::new();
        while kinds.len() < n {
            let message = self.next().await.expect("a message");
            kinds.push(
                message.data["kind"]
                    .as_str()
                    .unwrap_or(&message.name)
                    .to_owned(),
            );
        }
        kinds
    }
}

async fn call(world: &World) {
    let answer = world
        .as_owner("POST", "/api/v1/execute/sane.echo", &json!({ "input": {} }))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

async fn page(world: &World, query: &str) -> Value {
    let headers = [("Accept", "application/json")];
    let answer = world
        .send("GET", &format!("/api/v1/events{query}"), &headers, b"")
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_starts_from_now_and_resumes_without_a_gap_or_a_repeat() {
    let world = World::start().await;
    let _agent = Agent::start(&world, "sane").await;
    call(&world).await;
    let mut stream = Stream::open(&world, "/api/v1/events?topics=execution", None).await;
    call(&world).await;
    let first = stream.next().await.unwrap();
    assert_eq!(first.data["kind"], "execution.started");
    assert_eq!(first.id.as_deref(), first.data["id"].as_str());
    assert_eq!(stream.kinds(1).await, ["execution.succeeded"]);
    drop(stream);
    for _ in 0..3 {
        call(&world).await;
    }
    // What came while nobody listened is caught up from the store; what comes now is live.
    let mut again = Stream::open(
        &world,
        "/api/v1/events?topics=execution",
        first.id.as_deref(),
    )
    .await;
    call(&world).await;
    let mut kinds = again.kinds(9).await;
    assert_eq!(kinds.remove(0), "execution.succeeded");
    assert!(
        kinds
            .chunks(2)
            .all(|pair| pair == ["execution.started", "execution.succeeded"]),
        "{kinds:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_readers_at_any_moment_all_see_the_same_dense_sequence() {
    let world = World::start().await;
    let _agent = Agent::start(&world, "sane").await;
    let start = page(&world, "?limit=1000").await["next_cursor"]
        .as_str()
        .unwrap()
        .to_owned();
    let busy = async {
        for _ in 0..60 {
            call(&world).await;
        }
    };
    let reader = |wait: u64| {
        let (world, start) = (&world, start.as_str());
        async move {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            let mut stream = Stream::open(world, "/api/v1/events", Some(start)).await;
            let mut ids = Vec::new();
            while ids.len() < 120 {
                ids.push(stream.next().await.unwrap().id.unwrap());
            }
            ids
        }
    };
    let (seen, ()) = tokio::join!(
        futures_util::future::join_all((0..8).map(|n| reader(n * 40))),
        busy
    );
    let all: Vec<String> = page(&world, &format!("?limit=1000&after={start}")).await["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["id"].as_str().unwrap().to_owned())
        .collect();
    for ids in seen {
        assert_eq!(ids, all[..120]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_follow_each_other_and_filters_narrow_them() {
    let world = World::start().await;
    let _agent = Agent::start(&world, "sane").await;
    for _ in 0..5 {
        call(&world).await;
    }
    let all = page(&world, "?limit=1000").await;
    let all = all["events"].as_array().unwrap().clone();
    let (mut walked, mut cursor) = (Vec::new(), String::new());
    loop {
        let part = page(&world, &format!("?limit=3{cursor}")).await;
        walked.extend(part["events"].as_array().unwrap().clone());
        cursor = format!("&cursor={}", part["next_cursor"].as_str().unwrap());
        if part["more"] == false {
            break;
        }
    }
    assert_eq!(walked, all);
    let ended = page(&world, "?kind=execution.succeeded").await;
    let ended = ended["events"].as_array().unwrap();
    assert_eq!(ended.len(), 5);
    let id = ended[2]["execution_id"].as_str().unwrap();
    let one = page(&world, &format!("?execution={id}~1.secret")).await;
    assert!(
        one["events"]
            .as_array()
            .unwrap()
            .iter()
            .all(|event| event["execution_id"] == id)
    );
    assert_eq!(one["events"].as_array().unwrap().len(), 2);
    assert!(
        page(&world, "?agent=nobody").await["events"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    let agents = page(&world, "?topics=instance&agent=sane").await;
    assert_eq!(agents["events"][0]["kind"], "instance.registered");
    for bad in [
        "?kind=nothing",
        "?topics=nothing",
        "?execution=%20",
        "?run=a%2Fb",
        "?cursor=17",
        "?limit=x",
    ] {
        let answer = world.get(&format!("/api/v1/events{bad}")).await;
        assert_eq!(
            (answer.status, answer.category().as_str()),
            (400, "validation"),
            "{bad}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_position_that_is_not_there_is_a_reset_to_the_oldest() {
    let world = World::start().await;
    let other = World::start().await;
    let _agent = Agent::start(&world, "sane").await;
    let foreign = page(&other, "").await["next_cursor"]
        .as_str()
        .unwrap()
        .to_owned();
    for last in [foreign.as_str(), "nonsense"] {
        let mut stream = Stream::open(&world, "/api/v1/events", Some(last)).await;
        let reset = stream.next().await.unwrap();
        assert_eq!(reset.name, "reset");
        assert_eq!(reset.id.as_deref(), reset.data["oldest"].as_str());
        let oldest = page(&world, "?limit=1").await;
        assert_eq!(stream.next().await.unwrap().data, oldest["events"][0]);
    }
    assert_eq!(
        page(&world, &format!("?after={foreign}")).await["reset"],
        true
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_is_kept_alive_and_ends_with_the_plane() {
    let world = World::start().await;
    let _agent = Agent::start(&world, "sane").await;
    let mut stream = Stream::open(&world, "/api/v1/events?agent=nobody", None).await;
    call(&world).await;
    let first = stream.any().await.unwrap();
    let second = stream.any().await.unwrap();
    assert_eq!([&first.name, &second.name], ["tick", "tick"]);
    // The position moves on over what did not fit, so that a reader resumes from here.
    assert_ne!(first.id, second.id);
    let stopping = tokio::spawn(world.plane.stop());
    let end = stream.next().await.unwrap();
    assert_eq!(
        (end.name.as_str(), &end.data["reason"]),
        ("end", &json!("shutdown"))
    );
    assert_eq!(stream.next().await, None);
    timeout(wire::DEADLINE, stopping).await.unwrap().unwrap();
}

/// The first message says where the stream begins, and which start of which plane this is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_message_is_a_tick_from_whose_position_nothing_is_missed() {
    let (world, other) = (World::start().await, World::start().await);
    let _agent = Agent::start(&world, "sane").await;
    let tick = Stream::open(&world, "/api/v1/events?topics=execution", None)
        .await
        .any()
        .await
        .unwrap();
    assert_eq!(
        (tick.name.as_str(), &tick.id),
        ("tick", &tick.data["position"].as_str().map(str::to_owned))
    );
    assert!(tick.data["at"].as_str().unwrap().ends_with('Z'), "{tick:?}");
    assert_eq!(
        tick.data["version"],
        world.get("/api/v1/system").await.json()["version"]
    );
    let another = Stream::open(&other, "/api/v1/events?topics=execution", None)
        .await
        .any()
        .await
        .unwrap();
    assert!(tick.data["started"].as_str().unwrap().len() > 8);
    assert_ne!(tick.data["started"], another.data["started"]);
    call(&world).await;
    let mut again = Stream::open(
        &world,
        "/api/v1/events?topics=execution",
        tick.id.as_deref(),
    )
    .await;
    assert_eq!(
        again.kinds(2).await,
        ["execution.started", "execution.succeeded"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_name_one_thing_or_a_kind_of_things_and_several_are_a_union() {
    let world = World::start().await;
    let _agent = Agent::start(&world, "sane").await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        let answer = world
            .as_owner("POST", "/api/v1/execute/sane.echo", &json!({ "input": {} }))
            .await;
        runs.push(answer.json()["run_id"].as_str().unwrap().to_owned());
    }
    let of = async |topics: &str| {
        let page = page(&world, &format!("?limit=1000&topics={topics}")).await;
        page["events"].as_array().unwrap().clone()
    };
    let one = of(&format!("run:{}", runs[1])).await;
    assert_eq!(one.len(), 2);
    assert!(one.iter().all(|event| event["run_id"] == runs[1].as_str()));
    let id = one[0]["execution_id"].as_str().unwrap();
    assert_eq!(of(&format!("execution:{id}")).await, one);
    let two = of(&format!("run:{},run:{},run:{}", runs[0], runs[2], runs[0])).await;
    assert_eq!(two.len(), 4);
    assert_eq!(of("runs").await.len(), 6);
    let agents = of("agents").await;
    assert!(!agents.is_empty() && agents.iter().all(|event| event["agent"] == "sane"));
    for both in ["agent:sane", "agents,runs"] {
        let both = of(both).await;
        assert!(agents.iter().all(|event| both.contains(event)));
        let runs = both.iter().filter(|event| event["run_id"].is_string());
        assert_eq!(runs.count(), 6);
    }
    assert!(
        of("agent:nobody,node:n,worker:w,fleet,summary,queues")
            .await
            .is_empty()
    );
    let many = vec!["agent:a"; 257].join(",");
    for bad in [
        "run:",
        "run:a%2Fb",
        "agent:..",
        "thing:x",
        "summaries",
        &many,
    ] {
        let answer = world.get(&format!("/api/v1/events?topics={bad}")).await;
        assert_eq!(
            (answer.status, answer.category().as_str()),
            (400, "validation"),
            "{bad}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_what_is_only_told_as_changed_one_message_a_second_comes_and_the_last_change_is_told() {
    let world = World::start().await;
    let _agent = Agent::start(&world, "sane").await;
    let mut stream = Stream::open(&world, "/api/v1/events?topics=summary,queues", None).await;
    let began = tokio::time::Instant::now();
    while began.elapsed() < Duration::from_millis(2_200) {
        call(&world).await;
    }
    let mut last = page(&world, "?limit=1000").await;
    while last["more"] == true {
        let after = last["next_cursor"].as_str().unwrap();
        last = page(&world, &format!("?limit=1000&after={after}")).await;
    }
    let last = last["next_cursor"].clone();
    let (mut told, mut ends) = ([Vec::new(), Vec::new()], [false, false]);
    while ends != [true, true] {
        let message = stream.next().await.unwrap();
        assert_eq!(message.name, "changed");
        assert_eq!(message.id.as_deref(), message.data["position"].as_str());
        let place = usize::from(message.data["topic"] == "queues");
        told[place].push(tokio::time::Instant::now());
        ends[place] = message.data["position"] == last;
    }
    let took = began.elapsed().as_millis() as usize;
    for of_one in &told {
        assert!(of_one.len() >= 2, "{told:?}");
        assert!(
            of_one.len() <= 2 + took / 1_000,
            "{} in {took} ms",
            of_one.len()
        );
    }
}

/// Whoever continues with other topics gets every event after its position that fits them, and
/// is told of changes that it may have missed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_continues_with_other_topics_misses_nothing_and_gets_nothing_twice() {
    let world = World::start().await;
    let _agent = Agent::start(&world, "sane").await;
    let start = page(&world, "?limit=1000").await["next_cursor"]
        .as_str()
        .unwrap()
        .to_owned();
    let busy = async {
        for _ in 0..40 {
            call(&world).await;
        }
    };
    let reading = async {
        let topics = ["runs", "summary,execution", "queues,agent:sane,summary"];
        let (mut position, mut seen, mut turn) = (start.clone(), Vec::new(), 0);
        while seen.len() < 80 {
            let path = format!("/api/v1/events?topics={}", topics[turn % topics.len()]);
            let mut stream = Stream::open(&world, &path, Some(&position)).await;
            if turn % topics.len() > 0 {
                assert_eq!(stream.next().await.unwrap().name, "changed");
            }
            let mut here = 0;
            while here < 7 && seen.len() < 80 {
                let message = stream.any().await.unwrap();
                if let Some(id) = message.id {
                    position = id;
                }
                if message.name.is_empty() {
                    seen.push(message.data);
                    here += 1;
                }
            }
            turn += 1;
        }
        seen
    };
    let (seen, ()) = tokio::join!(reading, busy);
    let all = page(&world, &format!("?limit=1000&after={start}")).await;
    assert_eq!(&seen, all["events"].as_array().unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_stops_dispatching_and_lifting_it_says_what_goes_out() {
    let world = World::start().await;
    let agent = Agent::start(&world, "sane").await;
    let held = world
        .as_owner(
            "POST",
            "/api/v1/hold",
            &json!({ "reason": "restored from a copy" }),
        )
        .await;
    assert_eq!(held.status, 200, "{}", held.text());
    assert_eq!(held.json()["reason"], "restored from a copy");
    for _ in 0..3 {
        let answer = world
            .as_owner(
                "POST",
                "/api/v1/execute/async/sane.echo",
                &json!({ "input": {} }),
            )
            .await;
        assert_eq!(answer.status, 202, "{}", answer.text());
    }
    assert_eq!(agent.called(), 0);
    let health = world.get("/api/v1/health").await.json();
    assert_eq!(
        (&health["status"], &health["hold"]),
        (&json!("degraded"), &json!("restored from a copy"))
    );

    let would = world
        .as_owner("POST", "/api/v1/unhold?dry_run=true", &Value::Null)
        .await
        .json();
    assert_eq!(
        would,
        json!({
            "dry_run": true, "queued": [{ "agent": "sane", "executions": 3 }], "executions": 3, "webhooks": 0,
            "agents": [], "held": false,
        })
    );
    assert_eq!(world.get("/api/v1/hold").await.json()["held"], true);
    assert_eq!(
        world
            .as_owner("POST", "/api/v1/unhold", &Value::Null)
            .await
            .json()["executions"],
        3
    );
    assert_eq!(world.get("/api/v1/hold").await.json()["held"], false);
    let until = tokio::time::Instant::now() + wire::DEADLINE;
    while agent.called() < 3 {
        assert!(tokio::time::Instant::now() < until, "{}", agent.called());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    let one = world
        .as_owner(
            "POST",
            "/api/v1/hold",
            &json!({ "agent": "sane", "reason": "look" }),
        )
        .await;
    assert_eq!(one.json()["agents"], json!(["sane"]));
    assert_eq!(one.json()["held"], false);
    let lifted = world
        .as_owner("POST", "/api/v1/unhold", &Value::Null)
        .await
        .json();
    assert_eq!(lifted["agents"], json!(["sane"]), "who stays held");
    let nobody = world
        .as_owner(
            "POST",
            "/api/v1/hold",
            &json!({ "agent": "nobody", "reason": "look" }),
        )
        .await;
    assert_eq!(
        (nobody.status, nobody.category().as_str()),
        (404, "target_not_found")
    );
    let nobody = world
        .as_owner(
            "POST",
            "/api/v1/unhold?dry_run=true",
            &json!({ "agent": "nobody" }),
        )
        .await;
    assert_eq!(nobody.status, 404);
    for bad in [
        json!({}),
        json!({ "reason": "" }),
        json!({ "reason": "a\nb" }),
        json!({ "reason": "r", "agent": ".." }),
    ] {
        assert_eq!(
            world
                .as_owner("POST", "/api/v1/hold", &bad)
                .await
                .category(),
            "validation",
            "{bad}"
        );
    }
    let audit = world
        .as_owner("GET", "/api/v1/audit", &Value::Null)
        .await
        .text();
    assert!(audit.contains("hold.set") && audit.contains("hold.lifted"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_counted_has_a_lane_and_no_execution() {
    let world = World::start().await;
    let _agent = Agent::start(&world, "sane").await;
    call(&world).await;
    world
        .as_owner("POST", "/api/v1/execute/sane.fail", &json!({ "input": {} }))
        .await;
    world
        .as_owner("POST", "/api/v1/execute/sane.none", &json!({ "input": {} }))
        .await;
    let text = world.get("/metrics").await.text();
    for line in [
        r#"muster_executions_started_total{lane="sync",origin="server"} 2"#,
        r#"muster_executions_ended_total{lane="sync",status="succeeded",category="none",origin="server"} 1"#,
        r#"muster_executions_ended_total{lane="sync",status="failed",category="agent_error",origin="server"} 1"#,
        r#"muster_executions_refused_total{lane="sync",category="target_not_found",origin="server"} 1"#,
        r#"muster_agents{state="active"} 1"#,
        r#"muster_agent_slots_held{agent="sane"} 0"#,
        "muster_held 0",
        "muster_dispatches_in_flight 0",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("exec_"), "{text}");
    for name in text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
    {
        assert!(
            muster_server::meters::names::ALL
                .iter()
                .any(|metric| metric.name == name),
            "{name}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_s_key_is_bound_to_the_agent_it_registers_as_first() {
    let world = World::start().await;
    let (id, key) = world.key(&["worker:wrk_1"]).await;
    let register = |agent: &str| {
        json!({ "id": agent, "base_url": "http://127.0.0.1:9", "version": "1", "reasoners": [], "skills": [] }).to_string()
    };
    let first = world
        .as_key(
            &key,
            "POST",
            "/api/v1/nodes/register",
            register("mine").as_bytes(),
        )
        .await;
    assert!(first.status < 300, "{}", first.text());
    let other = world
        .as_key(
            &key,
            "POST",
            "/api/v1/nodes/register",
            register("other").as_bytes(),
        )
        .await;
    assert_eq!(
        (other.status, other.category().as_str()),
        (403, "permission_denied")
    );
    let again = world
        .as_key(
            &key,
            "POST",
            "/api/v1/nodes/register",
            register("mine").as_bytes(),
        )
        .await;
    assert!(again.status < 300, "{}", again.text());
    let beat = world
        .as_key(&key, "POST", "/api/v1/nodes/other/heartbeat", b"{}")
        .await;
    assert_eq!(beat.status, 403);
    let keys = world
        .as_owner("GET", "/api/v1/keys?all=true", &Value::Null)
        .await
        .json();
    let record = keys["keys"]
        .as_array()
        .unwrap()
        .iter()
        .find(|k| k["id"] == id.as_str())
        .unwrap();
    assert_eq!(record["scopes"], json!(["worker:wrk_1", "agent:mine"]));
}
