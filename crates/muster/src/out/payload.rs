//! JSON as it came, laid out for reading. Numbers are copied as text, never parsed: 2^63 and
//! 1e400 stay what the agent wrote.

/// Indents JSON text by two spaces. What is not JSON comes back as it was.
pub(crate) fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0usize;
    let mut chars = json.trim().chars().peekable();
    let mut in_text = false;
    while let Some(c) = chars.next() {
        if in_text {
            push_text(&mut out, c);
            match c {
                '\\' => out.extend(chars.next()),
                '"' => in_text = false,
                _ => {}
            }
            continue;
        }
        match c {
            '"' => {
                in_text = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                while chars.peek().is_some_and(|next| next.is_ascii_whitespace()) {
                    chars.next();
                }
                if chars.peek().is_some_and(|next| matches!(next, '}' | ']')) {
                    out.extend(chars.next());
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => push_text(&mut out, c),
        }
    }
    out
}

/// Control characters beyond ASCII and bidirectional marks may stand raw in JSON text; a
/// terminal must not see them.
fn push_text(out: &mut String, c: char) {
    match c {
        '\u{7f}'..='\u{9f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{feff}' => {
            *out += &format!("\\u{:04x}", c as u32);
        }
        c => out.push(c),
    }
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_escapes_stay_as_they_were_written() {
        assert_eq!(
            pretty(r#"{"a":[1e400,9223372036854775808],"b":{},"c":"x\"{,\u001b","d":[]}"#),
            "{\n  \"a\": [\n    1e400,\n    9223372036854775808\n  ],\n  \"b\": {},\n  \"c\": \"x\\\"{,\\u001b\",\n  \"d\": []\n}"
        );
        assert_eq!(pretty("42"), "42");
    }

    #[test]
    fn marks_that_turn_text_around_are_shown_and_not_obeyed() {
        assert_eq!(pretty("\"a\u{202e}b\""), "\"a\\u202eb\"");
    }
}
