//! `GET /api/v1/events`: the messages of the stream, and its pages.

use serde::{Deserialize, Serialize};

use super::{At, Open};
use crate::status::words;
use crate::{Category, EventKind, Status};

// Each list by the name under which a derived schema finds it: a derive does not see through a
// generic type.
/// A word of [`EventKind`].
pub type EventKindWord = Open<EventKind>;
/// A word of [`ChangedTopic`].
pub type ChangedTopicWord = Open<ChangedTopic>;
/// A word of [`EndReason`].
pub type EndReasonWord = Open<EndReason>;
/// A word of [`Status`].
type StatusWord = Open<Status>;

/// One event: the `data` of a message without a name. Absent keys do not apply to its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EventShown {
    /// Its position, opaque; continue after it with `cursor` or `Last-Event-ID`.
    pub id: String,
    /// When.
    pub at: At,
    /// What.
    pub kind: EventKindWord,
    /// The execution it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    /// Its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The attempt's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The execution's status after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusWord>,
    /// The finer word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_category: Option<Category>,
    /// A sentence of evidence; never a payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EventPage {
    /// In order.
    pub events: Vec<EventShown>,
    /// Continue after this, also when the page is empty.
    pub next_cursor: String,
    /// Whether there is more now.
    pub more: bool,
    /// The position asked for is not there any more: the page starts with the oldest event.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reset: bool,
}

words!(
    /// What `changed` tells of.
    ChangedTopic {
        /// Something that the overview shows.
        Summary = "summary",
        /// Something that decides who waits, and for what.
        Queues = "queues",
    }
);

/// `event: tick`: the first message, then whenever nothing else came for 5 seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TickFrame {
    /// The plane's time.
    pub at: At,
    /// Everything up to here was told or is not among the topics. Also the message's `id`.
    pub position: String,
    /// The plane's version.
    pub version: String,
    /// This start of the plane: another one after each restart.
    pub started: String,
}

/// `event: changed`: of each such topic one in a second at most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChangedFrame {
    /// What to read anew.
    pub topic: ChangedTopicWord,
    /// The plane's time.
    pub at: At,
    /// The newest event that this is about. Also the message's `id`.
    pub position: String,
}

/// `event: reset`: the position asked for is gone, the oldest events follow. Forget what you
/// know and read lists anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ResetFrame {
    /// The stream goes on after this position. Also the message's `id`.
    pub oldest: String,
}

/// `event: gap`: you are slow; what you missed follows from the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GapFrame {
    /// By how many events, of any kind.
    pub missed: u64,
}

words!(
    /// Why a stream ends.
    EndReason {
        /// The plane stops.
        Shutdown = "shutdown",
        /// The store could not be read.
        Store = "store",
    }
);

/// `event: end`: connect again later, with the last `id`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EndFrame {
    /// Why.
    pub reason: EndReasonWord,
}

/// The `data` of one message of the stream. Its name tells which: none is an event, else
/// `tick`, `changed`, `gap`, `reset`, `end`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum StreamMessage {
    /// Something happened.
    Event(Box<EventShown>),
    /// A sign of life.
    Tick(TickFrame),
    /// Something to read anew.
    Changed(ChangedFrame),
    /// Missed, and about to follow.
    Gap(GapFrame),
    /// Starting over.
    Reset(ResetFrame),
    /// The last one.
    End(EndFrame),
}

impl StreamMessage {
    /// The message's name; `None` for an event.
    pub fn name(&self) -> Option<&'static str> {
        match self {
            StreamMessage::Event(_) => None,
            StreamMessage::Tick(_) => Some("tick"),
            StreamMessage::Changed(_) => Some("changed"),
            StreamMessage::Gap(_) => Some("gap"),
            StreamMessage::Reset(_) => Some("reset"),
            StreamMessage::End(_) => Some("end"),
        }
    }

    /// The position after which a reader who has this message continues; `None` where it does
    /// not move.
    pub fn id(&self) -> Option<&str> {
        match self {
            StreamMessage::Event(event) => Some(&event.id),
            StreamMessage::Tick(tick) => Some(&tick.position),
            StreamMessage::Changed(changed) => Some(&changed.position),
            StreamMessage::Reset(reset) => Some(&reset.oldest),
            StreamMessage::Gap(_) | StreamMessage::End(_) => None,
        }
    }
}
