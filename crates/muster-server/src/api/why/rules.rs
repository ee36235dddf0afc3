//! The rules that the plane goes by: where each is written down, and what the dashboard can do
//! about what a command does.

use muster_wire::api::why::{WhyAct, WhyChange, WhyRule};

/// A rule with its text.
pub(super) fn rule(id: &str, text: impl Into<String>) -> WhyRule {
    WhyRule {
        id: id.to_owned(),
        text: text.into(),
        doc: doc(id).to_owned(),
    }
}

fn doc(id: &str) -> &'static str {
    match id {
        "absorbed" | "no_instance" | "agent" | "instance" => "docs/liveness.md",
        "approval" | "awaiting_child" | "paused" => "docs/contract.md#people-in-the-loop",
        "agent_full" | "queue" | "queue_moves" | "tags" => "docs/contract.md#admission",
        "hold" | "duty" => "docs/operations.md",
        "node" => "docs/fleet.md",
        "worker" => "docs/workers.md",
        _ => "docs/contract.md#status",
    }
}

/// What would change it, with the act of the dashboard that does the same.
pub(super) fn change(text: impl Into<String>, command: impl Into<String>) -> WhyChange {
    let command = command.into();
    WhyChange {
        text: text.into(),
        act: act(&command).map(Into::into),
        command,
    }
}

fn act(command: &str) -> Option<WhyAct> {
    let acts = [
        ("muster cancel --tree ", WhyAct::CancelTree),
        ("muster cancel ", WhyAct::Cancel),
        ("muster resume --tree ", WhyAct::ResumeTree),
        ("muster resume ", WhyAct::Resume),
        ("muster approve ", WhyAct::Approve),
        ("muster reject ", WhyAct::Reject),
        ("muster restart ", WhyAct::Restart),
        ("muster unhold", WhyAct::Unhold),
        ("muster tags approve ", WhyAct::ApproveTags),
        ("muster executions --agent ", WhyAct::ShowHolders),
        ("muster why ", WhyAct::Why),
        ("http://", WhyAct::Open),
        ("https://", WhyAct::Open),
    ];
    let found = acts.iter().find(|(begin, _)| command.starts_with(begin));
    found.map(|(_, act)| *act)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_the_dashboard_can_do_names_the_act() {
        for (command, wanted) in [
            ("muster cancel --tree run_1", Some(WhyAct::CancelTree)),
            ("muster cancel exec_1", Some(WhyAct::Cancel)),
            ("muster unhold", Some(WhyAct::Unhold)),
            ("set agents.restart_grace = \"-1s\" in muster.toml", None),
        ] {
            let act = change("", command).act.and_then(|act| act.known());
            assert_eq!(act, wanted, "{command}");
        }
    }
}
