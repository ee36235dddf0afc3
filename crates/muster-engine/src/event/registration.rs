//! What agents, their supervisors and probes say of an instance.

use std::sync::Arc;

use muster_wire::{AgentId, InstanceId};

use super::Waiter;
use crate::row::{Function, Payload};

/// A registration, checked for its form.
#[derive(Debug, Clone)]
pub struct Registration {
    /// Who is answered.
    pub waiter: Waiter,
    /// The agent.
    pub agent: AgentId,
    /// The process: `instance_id`, or `url:` and the address.
    pub instance: InstanceId,
    /// Who registers.
    pub principal: Arc<str>,
    /// Where it wants to be called.
    pub base_url: Arc<str>,
    /// Its version.
    pub version: Arc<str>,
    /// What it offers.
    pub functions: Arc<Vec<Function>>,
    /// Whether it says `starting`.
    pub starting: bool,
    /// The whole body, for lists and discovery.
    pub body: Payload,
    /// The supervised process whose key it used.
    pub worker: Option<Arc<str>>,
    /// Tags it asks for that need an approval.
    pub tags: Vec<Box<str>>,
    /// Where else it may be: addresses it named itself, and the one it registered from.
    pub candidates: Vec<Arc<str>>,
}

/// What a supervisor of ours says about a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerChange {
    /// It is about to be stopped and started again.
    WillRestart,
    /// It exited and will be started again.
    ExitedWillRestart(Arc<str>),
    /// It exited for good.
    Exited(Arc<str>),
    /// It was started.
    Started,
}

/// What a probe of `/health` saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// It answered as this agent.
    Alive,
    /// Something answered, but not as this agent.
    SomebodyElse(Arc<str>),
    /// It could not be dialled.
    Refused(Arc<str>),
    /// It was dialled and did not answer.
    Silent(Arc<str>),
}
