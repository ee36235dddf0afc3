//! What a node says of itself in its first frame, as it may be kept.

use std::sync::Arc;
use std::time::Duration;

use muster_engine::event::Waiter;
use muster_engine::fleet::event::Hello;
use muster_wire::fleet::frame::NodeFrame;

use crate::fleet::Link;

/// Text of a node as it may be kept: bounded, and without what a terminal would act on.
pub(crate) fn plain(text: &str, most: usize) -> Arc<str> {
    let fine = |c: &char| !c.is_control();
    text.chars()
        .filter(fine)
        .take(most)
        .collect::<String>()
        .into()
}

/// The event of a first frame, with what every dialect shares.
pub(crate) fn hello_of(waiter: Waiter, link: &Link, register: &NodeFrame) -> Hello {
    let NodeFrame::Register {
        name,
        capabilities,
        max_agents,
        tags,
        version,
        ..
    } = register
    else {
        unreachable!("only a register introduces a node");
    };
    let cut = |text: &str| plain(text, 256);
    Hello {
        waiter,
        node: link.node.clone(),
        link: link.id,
        name: cut(name),
        kind: link.kind,
        labels: tags
            .iter()
            .map(|tag| plain(tag, 128))
            .filter(|tag| !tag.is_empty())
            .take(64)
            .collect(),
        max_workers: *max_agents,
        capabilities: capabilities
            .iter()
            .take(256)
            .map(|capability| cut(&capability.name))
            .collect(),
        version: cut(version),
        host: None,
        epoch: None,
        beat_interval: Duration::from_secs(12),
        proves: false,
    }
}
