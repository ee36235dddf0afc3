//! `[server]`: the listener, and what the plane is called.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::{Size, Span};

/// `[server]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// What the plane is called, for people; `None` is the name of its machine.
    pub name: Option<String>,
    /// Address and port.
    pub listen: SocketAddr,
    /// Names that may stand in `Host` beside IP addresses, `localhost` and what we listen on.
    pub allowed_hosts: Vec<String>,
    /// The plane's address as workers on nodes reach it, like `https://plane.example`; `None` is
    /// the one at which their node reaches it.
    pub advertise: Option<String>,
    /// How long SIGTERM waits for callers that are still held.
    pub shutdown_timeout: Span,
    /// How long all stays as before after SIGTERM, but for readiness.
    pub shutdown_min_delay: Span,
    /// The largest body of a request.
    pub max_body: Size,
}

impl Server {
    /// The longest name, in characters.
    const NAME_MAX: usize = 64;

    /// What the plane is called: its name, or that of its machine.
    pub fn shown_name(&self) -> String {
        match self.own_name() {
            Some(name) => name.to_owned(),
            None => rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
        }
    }

    /// The name that somebody gave it.
    pub fn own_name(&self) -> Option<&str> {
        self.name.as_deref().filter(|name| !name.is_empty())
    }

    /// Whether it can be shown as a name.
    pub(crate) fn check_name(&self) -> Result<(), String> {
        let name = self.own_name().unwrap_or_default();
        if name.chars().count() > Self::NAME_MAX || name.chars().any(char::is_control) {
            return Err(format!(
                "server.name: at most {} characters, and no control characters",
                Self::NAME_MAX
            ));
        }
        Ok(())
    }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            name: None,
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            allowed_hosts: Vec::new(),
            advertise: None,
            shutdown_timeout: Span::seconds(30),
            shutdown_min_delay: Span::seconds(0),
            max_body: Size::mebibytes(32),
        }
    }
}
