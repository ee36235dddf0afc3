//! What is shown of a child's output: its lines, with the published SDK's structured ones in
//! short and without the secrets of attempts. The whole lines are in the plane's logs.

use std::borrow::Cow;

use serde::Deserialize;

/// A structured line of the published SDK.
#[derive(Deserialize)]
struct Structured<'a> {
    #[serde(borrow)]
    level: Cow<'a, str>,
    #[serde(borrow)]
    message: Cow<'a, str>,
    #[serde(borrow)]
    source: Cow<'a, str>,
    #[serde(default)]
    system_generated: bool,
}

/// The line as it is shown; `None` when there is nothing in it for the person who looks.
pub(super) fn shown(line: &str) -> Option<String> {
    if line.starts_with('{')
        && let Ok(said) = serde_json::from_str::<Structured<'_>>(line)
    {
        // What an author logs at info has the SDK's source as well, and is not hidden.
        let is_chatter = match &*said.level {
            "debug" => said.system_generated || said.source.starts_with("sdk.python."),
            "info" => said.system_generated,
            _ => false,
        };
        if is_chatter {
            return None;
        }
        return Some(without_secrets(&format!(
            "{}: {}",
            said.level, said.message
        )));
    }
    Some(without_secrets(line))
}

/// `exec_…~1.secret` becomes `exec_…`: an attempt's secret proves its sender.
fn without_secrets(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('~') {
        let (head, tail) = rest.split_at(at);
        out += head;
        let length = secret_length(tail);
        if length == 0 {
            out.push('~');
        }
        rest = &tail[length.max(1)..];
    }
    out + rest
}

/// How long `~n.secret` at the start of a text is; 0 when it is something else.
fn secret_length(text: &str) -> usize {
    const SECRET: usize = 16;
    let bytes = text.as_bytes();
    let digits = bytes[1..].iter().take_while(|b| b.is_ascii_digit()).count();
    let dot = 1 + digits;
    if digits == 0 || bytes.get(dot) != Some(&b'.') {
        return 0;
    }
    let secret = bytes[dot + 1..]
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        .count();
    if secret >= SECRET {
        dot + 1 + SECRET
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_attempts_are_cut_and_other_tildes_stay() {
        for (line, want) in [
            ("done exec_1~1.nLyp2GTMfh459CoI ok", "done exec_1 ok"),
            ("a~12.nLyp2GTMfh459-_I", "a"),
            ("~/home ~1.5 ~ ~1.short", "~/home ~1.5 ~ ~1.short"),
            ("~", "~"),
            ("é~é", "é~é"),
        ] {
            assert_eq!(without_secrets(line), want);
        }
    }

    #[test]
    fn the_sdk_s_own_chatter_is_hidden_and_the_author_s_lines_are_shown() {
        let line = |level: &str, source: &str, system: bool| {
            shown(&format!(
                r#"{{"ts":"x","level":"{level}","message":"hi","source":"{source}","system_generated":{system}}}"#
            ))
        };
        assert_eq!(line("info", "sdk.python.agent_workflow", true), None);
        assert_eq!(line("debug", "sdk.python.logger", false), None);
        assert_eq!(
            line("error", "sdk.python.logger", false).unwrap(),
            "error: hi"
        );
        assert_eq!(
            line("info", "sdk.python.logger", false).unwrap(),
            "info: hi"
        );
        assert_eq!(shown(r#"{"any": "json"}"#).unwrap(), r#"{"any": "json"}"#);
        assert_eq!(shown("plain").unwrap(), "plain");
    }
}
