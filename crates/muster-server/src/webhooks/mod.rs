//! Webhooks: a call may name an address that is told of its end. What was asked for is checked
//! and sealed here; the message is written by the commit of the end; the delivery takes it
//! from the store. Decides nothing about executions.

mod backoff;
mod deliver;
pub(crate) mod message;
mod round;
mod send;
mod wanted;

use std::net::SocketAddr;
use std::sync::Arc;

use muster_engine::effect::ExecutionView;
use muster_wire::ExecutionId;
use serde_json::value::RawValue;
use tokio::sync::Notify;

pub(crate) use deliver::start;
pub(crate) use wanted::Webhook;

use crate::app::App;
use crate::config::WebhookRules;
use crate::dispatch::address::DialRules;
use crate::identity::{IdentityError, Ready};

/// Where messages may go, and what wakes their delivery.
#[derive(Debug, Default)]
pub struct Webhooks {
    wake: Notify,
    rules: DialRules,
}

impl Webhooks {
    /// Reads the rules.
    ///
    /// # Errors
    /// Names the entry that is no address and no network.
    pub fn new(rules: &WebhookRules) -> Result<Self, String> {
        Ok(Self {
            wake: Notify::new(),
            rules: DialRules::of_webhooks(&rules.allow)?,
        })
    }

    /// Tells where the plane itself listens: no message goes there.
    pub fn set_own(&self, address: SocketAddr) {
        self.rules.set_own(address);
    }

    /// Where messages may go.
    pub(crate) fn rules(&self) -> &DialRules {
        &self.rules
    }

    /// Something is due, or may be sent again.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// An execution's newest view was committed: its end has a message.
    pub(crate) fn saw(&self, view: &ExecutionView) {
        let row = &view.row;
        let links = row.links.as_ref();
        if row.status.is_terminal() && links.is_some_and(|links| links.webhook.is_some()) {
            self.wake();
        }
    }
}

/// What a call asked for.
#[derive(Debug, Default)]
pub(crate) enum Asked {
    /// Nothing.
    #[default]
    Nothing,
    /// Something that cannot be used, and why. It does not refuse the call.
    Bad(String),
    /// To be told there.
    Good(Box<Webhook>),
}

impl Asked {
    /// Reads the member of a body.
    pub(crate) fn read(given: Option<&RawValue>) -> Self {
        match given.map(RawValue::get) {
            None | Some("null") => Self::Nothing,
            Some(text) => match Webhook::read(text) {
                Ok(webhook) => Self::Good(Box::new(webhook)),
                Err(why) => Self::Bad(why),
            },
        }
    }

    /// Seals it for the row of this execution; with what the caller is told.
    pub(crate) async fn seal(
        self,
        app: &App,
        execution: &ExecutionId,
    ) -> (Option<Arc<str>>, Registered) {
        let webhook = match self {
            Self::Nothing => return (None, Registered::Unasked),
            Self::Bad(why) => return (None, Registered::Not(why)),
            Self::Good(webhook) => webhook,
        };
        if let Err(why) = webhook.check(&app.webhooks.rules) {
            return (None, Registered::Not(why));
        }
        let sealed = match ready(app).await {
            Ok(ready) => webhook
                .seal(ready.sealer(), execution)
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match sealed {
            Ok(text) => (Some(text), Registered::Yes),
            Err(error) => {
                tracing::error!(error = %error, "a webhook could not be sealed");
                let why = "the plane cannot seal its secret now; its log has the cause";
                (None, Registered::Not(why.to_owned()))
            }
        }
    }
}

/// What a caller is told of the webhook it asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Registered {
    /// It asked for none.
    Unasked,
    /// It will be told.
    Yes,
    /// It will not, and why.
    Not(String),
}

impl Registered {
    /// The same when the call joined an execution that was there before: that one's counts.
    pub(crate) fn joined(self, has_one: bool) -> Self {
        match (self, has_one) {
            (Self::Unasked, false) => Self::Unasked,
            (_, true) => Self::Yes,
            (_, false) => Self::Not(
                "this call joined an execution that was there before and has no webhook".to_owned(),
            ),
        }
    }
}

/// The key that seals.
pub(crate) async fn ready(app: &App) -> Result<Arc<Ready>, IdentityError> {
    if let Some(ready) = app.identity.at_hand() {
        return Ok(ready);
    }
    let work = app.clone();
    app.blocking(move |stores| work.identity.ready(&work.config, stores))
        .await
}
