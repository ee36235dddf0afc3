//! The first minute of `muster dev`: what it says of itself, the example call, and what to do next.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_engine::liveness::InstanceFacts;
use muster_server::App;
use muster_wire::{AgentId, Category};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{LINK_GOOD_FOR, REGISTERS_WITHIN, Session, registers};
use crate::client::Client;
use crate::failure::{Failure, Outcome};
use crate::out;
use crate::out::{Colour, Style, agent_mark, clean, execution_mark, span};

impl Session {
    pub(super) fn say_ready(&self, durability: &str, took: Duration) {
        let style = &self.look.data;
        out::data(&format!(
            "{} dev   {}/ui/   store {} (sqlite, durability {durability})   ready in {}",
            style.paint(Colour::Bold, concat!("muster ", env!("CARGO_PKG_VERSION"))),
            self.address,
            self.args.data.display(),
            seconds(took),
        ));
        // Behind the `#`, so that no server and no log sees it.
        let now = self.app.clock.now();
        if let Some(code) = self.app.auth.owner_code(now + LINK_GOOD_FOR, now) {
            let address = &self.address;
            out::data(&format!(
                "  open   {address}/ui/login#code={code}   (signs in, once)"
            ));
        }
        out::data(&format!("  docs   {}/docs", self.address));
    }

    /// Waits for the first registration and says what to do with it.
    pub(super) async fn tell_story(
        &self,
        own: bool,
        worker: &Arc<str>,
        mut events: tokio::sync::broadcast::Receiver<Arc<muster_engine::row::EventRow>>,
        pids: tokio::sync::watch::Receiver<Option<u32>>,
    ) -> Outcome<()> {
        let began = Instant::now();
        let waiting = async {
            loop {
                if let Some(found) = self.registered(worker) {
                    return Ok(found);
                }
                registers::next_registration(&mut events).await;
            }
        };
        let found = if own {
            tokio::time::timeout(REGISTERS_WITHIN, waiting)
                .await
                .unwrap_or_else(|_| {
                    Err(Failure::new(
                        Category::NodeUnavailable,
                        "the example agent has not registered in 20 s",
                    )
                    .hint("MUSTER_LOG=info shows what the plane does"))
                })
        } else {
            waiting.await
        };
        let (agent, functions): (AgentId, Vec<String>) = found?;
        let style = &self.look.data;
        let mark = agent_mark("active");
        let pid = pids
            .borrow()
            .map_or_else(|| "—".to_owned(), |pid| pid.to_string());
        out::data(&style.words(&format!(
            "  agent  {:8} {} {}     pid {pid}, registered in {}: {}",
            clean(agent.as_str()),
            mark.painted(style),
            style.paint(mark.colour, "active"),
            seconds(began.elapsed()),
            if functions.is_empty() {
                "no functions".to_owned()
            } else {
                clean(&functions.join(", "))
            },
        )));
        if own {
            self.call_once(style).await?;
            self.say_again("hello.greet", r#"{"name":"world"}"#);
            out::data(
                "  yours  muster dev -- python agent.py          stop with Ctrl-C, data stays",
            );
        } else if let Some(function) = functions.first() {
            self.say_again(
                &format!("{agent}.{function}"),
                &self.sample_input(&agent, function).await,
            );
        }
        Ok(())
    }

    fn say_again(&self, target: &str, input: &str) {
        out::data(&format!(
            "  {}  curl -s {}/api/v1/execute/{target} -H 'content-type: application/json' -d '{{\"input\":{}}}'",
            if self.args.command.is_empty() {
                "again"
            } else {
                "call "
            },
            self.address,
            input.replace('\'', "'\\''"),
        ));
    }

    /// The agent that registered with the worker's key.
    fn registered(&self, worker: &Arc<str>) -> Option<(AgentId, Vec<String>)> {
        for agent in self.app.directory.agents() {
            let is_ours = agent.instances().iter().any(|instance| {
                instance
                    .facts()
                    .is_some_and(|facts| facts.worker.as_deref() == Some(&**worker))
            });
            if is_ours {
                let functions = agent
                    .functions()
                    .iter()
                    .map(|f| f.name.to_string())
                    .collect();
                return Some((agent.id.clone(), functions));
            }
        }
        None
    }

    async fn call_once(&self, style: &Style) -> Outcome<()> {
        let client = Client::new(&self.address, None)?;
        let input = json!({"name": "world"});
        let began = Instant::now();
        let answer = client
            .post("/api/v1/execute/hello.greet", &json!({"input": input}))
            .await?;
        let took = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        #[derive(serde::Deserialize)]
        struct Ended<'a> {
            status: String,
            run_id: String,
            #[serde(borrow)]
            result: &'a RawValue,
        }
        let ended: Ended<'_> = answer.read()?;
        let mark = execution_mark(&ended.status, "");
        out::data(&style.words(&format!(
            "  call   hello.greet {input}   {} {} in {}   {}",
            mark.painted(style),
            style.paint(mark.colour, &clean(&ended.status)),
            span::duration(took),
            clean(&ended.run_id),
        )));
        out::data(&format!("         {}", clean(ended.result.get())));
        Ok(())
    }

    /// An input with a value for each required field, from the schema the agent registered.
    async fn sample_input(&self, agent: &AgentId, function: &str) -> String {
        let path = format!("/api/v1/nodes/{}", crate::client::encode(agent.as_str()));
        let Ok(client) = Client::new(&self.address, None) else {
            return "{}".to_owned();
        };
        match client.get_json(&path).await {
            Ok(node) => sample(&node, function).to_string(),
            Err(_) => "{}".to_owned(),
        }
    }
}

/// What is known of the processes that registered with a worker's key.
pub(super) fn facts_of(app: &App, worker: &str) -> Vec<Arc<InstanceFacts>> {
    let mut found = Vec::new();
    for agent in app.directory.agents() {
        for instance in agent.instances().iter() {
            found.extend(
                instance
                    .facts()
                    .filter(|facts| facts.worker.as_deref() == Some(worker)),
            );
        }
    }
    found
}

/// Finds a function's schema in an agent's document and makes an input of it.
pub(super) fn sample(node: &Value, function: &str) -> Value {
    let registration = node.get("registration").unwrap_or(node);
    let schema = ["reasoners", "skills"]
        .iter()
        .filter_map(|list| registration.get(list)?.as_array())
        .flatten()
        .find(|entry| {
            ["id", "name"]
                .iter()
                .any(|key| entry.get(key).and_then(Value::as_str) == Some(function))
        })
        .and_then(|entry| entry.get("input_schema"));
    let mut input = serde_json::Map::new();
    let required = schema
        .and_then(|s| s.get("required"))
        .and_then(Value::as_array);
    for field in required.into_iter().flatten().filter_map(Value::as_str) {
        let of = schema.and_then(|s| {
            s.pointer(&format!(
                "/properties/{}/type",
                field.replace('~', "~0").replace('/', "~1")
            ))
        });
        let value = match of.and_then(Value::as_str) {
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => json!("…"),
        };
        input.insert(field.to_owned(), value);
    }
    Value::Object(input)
}

fn seconds(took: Duration) -> String {
    format!("{}.{} s", took.as_secs(), took.subsec_millis() / 100)
}

/// The name before the child's lines: the program's, or its script's.
pub(super) fn label_of(command: &[String]) -> String {
    let script = command.iter().skip(1).find(|arg| !arg.starts_with('-'));
    let of = script.unwrap_or(&command[0]);
    let name = std::path::Path::new(of)
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or("agent");
    clean(name).chars().take(20).collect()
}
