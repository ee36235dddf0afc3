//! The addresses of agents that are workers of nodes. Two machines may each have an agent at
//! `http://localhost:8001`; here the one of worker `wrk_1` is `http://wrk_1@localhost:8001`, so
//! that no two are the same and none is ever dialled from the plane's own machine.

use http::Uri;

use crate::dispatch::address::{is_numeric, literal};

/// Whether an address that a worker registers is one of its own machine, at which it is called
/// through its node. A name with a dot is somebody's own setting, and is dialled like any other.
pub(crate) fn carries(base_url: &str) -> bool {
    let Ok(uri) = base_url.parse::<Uri>() else {
        return false;
    };
    let host = uri.host().unwrap_or_default();
    uri.scheme_str() == Some("http")
        && (literal(host).is_some()
            || is_numeric(host)
            || host == "host.docker.internal"
            || !host.contains('.'))
}

/// The address of a worker's agent as the plane keeps it.
pub(crate) fn through(base_url: &str, worker: &str) -> String {
    match base_url.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{worker}@{rest}"),
        None => base_url.to_owned(),
    }
}

/// Through which worker's node an address goes; `None` for all others.
pub(crate) fn worker_of(uri: &Uri) -> Option<&str> {
    let (worker, _) = uri.authority()?.as_str().split_once('@')?;
    Some(worker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_machine_s_own_go_through_its_node_and_names_of_others_do_not() {
        for own in [
            "http://localhost:8001",
            "http://127.0.0.1:8001",
            "http://10.0.0.7:8001",
            "http://[::1]:8001",
            "http://box7:8001",
            "http://host.docker.internal:8001",
        ] {
            assert!(carries(own), "{own}");
            let kept = through(own, "wrk_1");
            let uri: Uri = format!("{kept}/reasoners/f").parse().unwrap();
            assert_eq!(worker_of(&uri), Some("wrk_1"), "{own}");
            assert_eq!(uri.port_u16(), Some(8001));
            assert_eq!(uri.path(), "/reasoners/f");
        }
        for other in ["https://localhost:8001", "http://agent.example.com", "x"] {
            assert!(!carries(other), "{other}");
        }
        assert_eq!(worker_of(&"http://localhost:1".parse().unwrap()), None);
    }
}
