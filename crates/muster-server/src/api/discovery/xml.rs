//! Discovery as XML 1.0. Characters that XML cannot carry are replaced.

use std::fmt::Write as _;

use super::Found;
use super::offer::Function;

/// The whole document.
pub(super) fn document(found: &Found) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let page = &found.pagination;
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<discovery discovered_at=\"{}\" total_agents=\"{}\" total_reasoners=\"{}\" total_skills=\"{}\" limit=\"{}\" offset=\"{}\" has_more=\"{}\">",
        found.discovered_at,
        found.total_agents,
        found.total_reasoners,
        found.total_skills,
        page.limit,
        page.offset,
        page.has_more
    );
    for agent in &found.capabilities {
        out.push_str("<agent");
        for (name, value) in [
            ("id", Some(agent.agent_id.as_str())),
            ("base_url", agent.base_url.as_deref()),
            ("version", agent.version.as_deref()),
            ("health_status", Some(agent.health_status)),
            ("state", Some(agent.state)),
            ("deployment_type", Some(agent.deployment_type)),
            ("last_heartbeat", agent.last_heartbeat.as_deref()),
        ] {
            attribute(&mut out, name, value);
        }
        out.push('>');
        functions(&mut out, "reasoners", "reasoner", &agent.reasoners);
        functions(&mut out, "skills", "skill", &agent.skills);
        out.push_str("</agent>");
    }
    out.push_str("</discovery>\n");
    out
}

fn functions(out: &mut String, list: &str, one: &str, functions: &[Function]) {
    let _ = write!(out, "<{list}>");
    for function in functions {
        let _ = write!(out, "<{one}");
        attribute(out, "id", Some(&function.id));
        attribute(out, "target", Some(&function.invocation_target));
        out.push('>');
        element(out, "description", function.description.as_deref());
        for tag in &function.tags {
            element(out, "tag", Some(tag));
        }
        for (name, json) in [
            ("input_schema", &function.input_schema),
            ("output_schema", &function.output_schema),
            ("examples", &function.examples),
        ] {
            element(out, name, json.as_ref().map(|json| json.get()));
        }
        let _ = write!(out, "</{one}>");
    }
    let _ = write!(out, "</{list}>");
}

/// An unknown value has no attribute.
fn attribute(out: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        let _ = write!(out, " {name}=\"");
        escape(out, value);
        out.push('"');
    }
}

fn element(out: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        let _ = write!(out, "<{name}>");
        escape(out, value);
        let _ = write!(out, "</{name}>");
    }
}

fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\t' => out.push_str("&#9;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        let mut out = String::new();
        escape(&mut out, "<a b=\"&\">\0\n\u{ffff}]]>");
        assert_eq!(
            out,
            "&lt;a b=&quot;&amp;&quot;&gt;\u{fffd}&#10;\u{fffd}]]&gt;"
        );
    }
}
