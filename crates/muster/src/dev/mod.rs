//! `muster dev`: a plane, and beside it one process: the example agent, or a command of yours
//! that is started again when its files change.

pub(crate) mod example;
mod lines;
mod node;
mod registers;
mod remains;
mod story;
mod supervise;
mod watch;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_engine::Event;
use muster_server::config::PlaneOrigin;
use muster_server::{App, Running};
use muster_wire::{Category, Origin};
use node::LocalNode;
use remains::Note;
use supervise::Supervised;
use tokio_util::sync::CancellationToken;
use watch::Watch;
use worker::WorkerKeys;

use crate::cli::Dev;
use crate::commands::server::{
    Stop, doubts, leave_quietly, raise_file_limit, runtime, start, start_logging,
};
use crate::failure::{Failure, Outcome};
use crate::out;
use crate::out::{Look, node_mark};
use crate::settings::Sources;

use self::story::{facts_of, label_of};

/// How long the link that signs in is good, unused.
const LINK_GOOD_FOR: Duration = Duration::from_secs(12 * 3_600);

/// How long the example agent may take until something is said about it.
const REGISTERS_WITHIN: Duration = Duration::from_secs(20);

/// Runs until Ctrl-C.
pub(crate) fn run(args: Dev, look: &Look) -> Outcome<u8> {
    let mut sources = Sources::of_this_process(args.config.clone());
    let data = args.data.display().to_string();
    sources.flags.push(("--data", "store.data", data));
    sources.flags.push(match &args.listen {
        Some(listen) => ("--listen", "server.listen", listen.clone()),
        None => (
            "--port",
            "server.listen",
            format!("127.0.0.1:{}", args.port),
        ),
    });
    let mut loaded = sources.load()?;
    let is_ci = std::env::var_os("CI").is_some();
    loaded.config.origin = PlaneOrigin(if is_ci { Origin::Ci } else { Origin::Dev });
    start_logging("warn");
    doubts(&loaded);
    raise_file_limit();
    runtime()?.block_on(async {
        let began = Instant::now();
        let mut stop = Stop::listen()?;
        let durability = format!("{:?}", loaded.config.store.durability).to_lowercase();
        let restart_grace = loaded.config.agents.restart_grace.0.unwrap_or_default();
        let running = start(loaded.config)
            .await
            .map_err(|failure| say_what_to_do(failure, &args))?;
        let session = Session {
            address: format!("http://{}", running.address),
            app: running.app.clone(),
            look: look.clone(),
            args,
            restart_grace,
        };
        session.say_ready(&durability, began.elapsed());
        session.run(running, &mut stop).await
    })
}

fn say_what_to_do(failure: Failure, args: &Dev) -> Failure {
    let message = failure.body.message.clone();
    if message.contains("cannot listen") && args.listen.is_none() {
        return failure.hint(format!(
            "something listens there already; if it is a muster, use it, or take another port: muster dev --port {}",
            args.port.checked_add(1).unwrap_or(8090)
        ));
    }
    if message.contains("in use by another muster") {
        return failure.hint(
            "stop the other one, or give this one a directory of its own: muster dev --port 8081 --data DIR",
        );
    }
    failure
}

/// One `muster dev`.
struct Session {
    address: String,
    app: App,
    look: Look,
    args: Dev,
    restart_grace: Duration,
}

impl Session {
    async fn run(self, running: Running, stop: &mut Stop) -> Outcome<u8> {
        let worker: Arc<str> = muster_wire::id::mint("wrk").into();
        let keys = Arc::new(WorkerKeys::of(self.app.clone(), worker.clone()));
        // The store is ours by now, so whoever left something is gone.
        let note = Note::in_directory(&self.args.data);
        if let Some(pid) = note.end().await {
            out::talk(&format!(
                "ended pid {pid}: a muster dev that was killed had left it running"
            ));
        }
        let own = self.args.command.is_empty();
        let command = if own {
            vec![
                std::env::current_exe()?.display().to_string(),
                "example-agent".to_owned(),
            ]
        } else {
            self.args.command.clone()
        };
        let watch = if own {
            None
        } else {
            let watch = Watch::start(&PathBuf::from("."), &self.args.data)?;
            if watch.is_partial() {
                out::talk("more than 4,096 directories here: changes in the others are not seen");
            }
            Some(watch)
        };
        let (started, pids) = tokio::sync::watch::channel(None);
        let supervised = Supervised {
            label: (!own).then(|| label_of(&command)),
            command,
            env: {
                let (address, keys) = (self.address.clone(), keys.clone());
                Box::new(move || {
                    let (address, keys) = (address.clone(), keys.clone());
                    Box::pin(async move {
                        Ok(vec![
                            ("AGENTFIELD_SERVER", address),
                            ("AGENTFIELD_API_KEY", keys.for_next_process().await?),
                            // Below the time after which the supervisor kills.
                            ("AGENTFIELD_SHUTDOWN_TIMEOUT", "8s".to_owned()),
                            ("PYTHONUNBUFFERED", "1".to_owned()),
                        ])
                    })
                })
            },
            note,
            restart_grace: self.restart_grace,
            tell: {
                let app = self.app.clone();
                let worker = worker.clone();
                Box::new(move |change| {
                    app.driver.tell(Event::WorkerChanged {
                        worker: worker.clone(),
                        change,
                    });
                })
            },
            is_quiet: {
                let app = self.app.clone();
                let worker = worker.clone();
                let exchanges = running.exchanges();
                Box::new(move || {
                    facts_of(&app, &worker)
                        .iter()
                        .filter(|facts| facts.gone.is_none())
                        .all(|facts| {
                            facts.restart_until.is_some() && exchanges(&facts.base_url) == 0
                        })
                })
            },
            look: self.look.clone(),
            started,
        };
        let registrations = self.app.feed.subscribe();
        let ending = CancellationToken::new();
        let mut supervising = tokio::spawn(supervised.run(watch, ending.clone()));
        let mut looking = std::pin::pin!(registers::look(
            &self.app,
            &worker,
            self.app.feed.subscribe(),
            pids.clone(),
            &self.look.errors,
        ));
        let mut looked = own;
        let mut telling = std::pin::pin!(self.tell_story(own, &worker, registrations, pids));
        let mut told = false;
        let mut local = None;
        let mut joining = Box::pin(self.start_node());
        let mut joined = false;
        let ended = loop {
            tokio::select! {
                node = &mut joining, if !joined => {
                    joined = true;
                    local = node;
                }
                ended = &mut supervising => break Some(ended),
                story = &mut telling, if !told => {
                    told = true;
                    if let Err(failure) = story {
                        failure.print(&self.look.errors, false);
                    }
                }
                () = &mut looking, if !looked => looked = true,
                name = stop.next() => {
                    out::talk(&format!("{name}: stopping"));
                    break None;
                }
            }
        };
        drop(joining);
        let leaving = async {
            ending.cancel();
            leave_quietly();
            // While the plane still hears how its workers end.
            if let Some(local) = local {
                local.end(self.args.keep_workers).await;
            }
            let ended = match ended {
                Some(ended) => ended,
                None => (&mut supervising).await,
            };
            keys.end().await;
            running.stop().await;
            ended
        };
        tokio::select! {
            ended = leaving => match ended {
                Ok(outcome) => outcome.map(|()| 0),
                Err(error) => Err(Failure::new(Category::InternalError, error.to_string())),
            },
            _ = stop.next() => {
                supervising.abort();
                out::talk("ended at once; what was answered is stored");
                // Dropping the child kills its group.
                let _ = supervising.await;
                Ok(130)
            }
        }
    }

    /// Starts the local node and says that it is there. Everything else works without it.
    async fn start_node(&self) -> Option<LocalNode> {
        let joining = async {
            let (mut node, client) = LocalNode::start(&self.address, &self.args.data).await?;
            match node.online(&client).await {
                Ok(()) => Ok(node),
                Err(failure) => {
                    node.end(self.args.keep_workers).await;
                    Err(failure)
                }
            }
        };
        match joining.await {
            Ok(node) => {
                let style = &self.look.data;
                let mark = node_mark("online", false);
                out::data(&style.words(&format!(
                    "  node   {:8} {} {}     {} slots",
                    node::NAME,
                    mark.painted(style),
                    style.paint(mark.colour, "online"),
                    node::SLOTS,
                )));
                Some(node)
            }
            Err(failure) => {
                failure.print(&self.look.errors, false);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::story::sample;
    use super::*;

    #[test]
    fn the_label_is_the_script_or_the_program() {
        let label =
            |words: &[&str]| label_of(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        assert_eq!(label(&["python", "billing/main.py"]), "main");
        assert_eq!(label(&["python", "-m", "my_agent"]), "my_agent");
        assert_eq!(label(&["/usr/bin/agent"]), "agent");
    }

    #[test]
    fn a_sample_input_has_what_the_schema_requires() {
        let node = json!({"reasoners": [
            {"id": "plan", "input_schema": {"required": ["city", "days"], "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "more": {}}}},
        ]});
        assert_eq!(sample(&node, "plan"), json!({"city": "…", "days": 1}));
        assert_eq!(sample(&node, "other"), json!({}));
        assert_eq!(sample(&Value::Null, "plan"), json!({}));
    }
}
