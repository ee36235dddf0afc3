//! Ids as people read and type them: short on a terminal, and found by any prefix or tail.

/// The short form: noun, `…`, the last six. Ids of others are whole up to 20 characters.
pub(crate) fn short(id: &str, ellipsis: &str) -> String {
    if is_ours(id)
        && let Some((noun, rest)) = id.split_once('_')
    {
        return format!("{noun}_{ellipsis}{}", &rest[20..]);
    }
    if id.chars().count() <= 20 {
        return id.to_owned();
    }
    let chars: Vec<char> = id.chars().collect();
    let head: String = chars[..8].iter().collect();
    let tail: String = chars[chars.len() - 6..].iter().collect();
    format!("{head}{ellipsis}{tail}")
}

/// A noun and the 26 characters of one of our own.
fn is_ours(id: &str) -> bool {
    id.split_once('_').is_some_and(|(_, rest)| {
        rest.len() == 26
            && rest
                .bytes()
                .all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
    })
}

/// A sentence with every id of ours in it in its short form.
pub(crate) fn shorten_in(text: &str, ellipsis: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let word = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let other = rest[word..].find(is_part).unwrap_or(rest.len() - word);
        let (word, other) = (&rest[..word], &rest[word..word + other]);
        out += &match is_ours(word) {
            true => short(word, ellipsis),
            false => word.to_owned(),
        };
        out += other;
        rest = &rest[word.len() + other.len()..];
    }
    out
}

/// What somebody typed for an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Whole, a prefix, or a tail of at least four characters.
    Text(String),
    /// A pasted short form: how it begins and how it ends.
    Short(String, String),
}

impl Pattern {
    /// Reads what was typed.
    pub(crate) fn read(text: &str) -> Self {
        for gap in ["…", "...", ".."] {
            if let Some((head, tail)) = text.split_once(gap) {
                return Pattern::Short(head.to_owned(), tail.to_owned());
            }
        }
        Pattern::Text(text.to_owned())
    }

    /// Whether it can be asked for as it is.
    pub(crate) fn whole(&self) -> Option<&str> {
        match self {
            Pattern::Text(text) => Some(text),
            Pattern::Short(..) => None,
        }
    }

    /// How many characters say which one it is: the noun and the gap do not.
    pub(crate) fn said(&self) -> usize {
        let (head, tail) = match self {
            Pattern::Text(text) => (text.as_str(), ""),
            Pattern::Short(head, tail) => (head.as_str(), tail.as_str()),
        };
        let head = ["exec_", "run_", "key_", "node_", "wrk_"]
            .iter()
            .find_map(|noun| head.strip_prefix(noun))
            .unwrap_or(head);
        head.chars().count() + tail.chars().count()
    }

    /// Whether an id is meant.
    pub(crate) fn fits(&self, id: &str) -> bool {
        match self {
            Pattern::Text(text) => {
                id == text
                    || id.starts_with(text.as_str())
                    || (text.len() >= 4 && ends_with(id, text))
            }
            Pattern::Short(head, tail) => {
                id.len() >= head.len() + tail.len()
                    && id.starts_with(head.as_str())
                    && ends_with(id, tail)
            }
        }
    }
}

/// Our own ids are read without regard to case, as Crockford's alphabet means them to be.
fn ends_with(id: &str, tail: &str) -> bool {
    id.len() >= tail.len()
        && id.is_char_boundary(id.len() - tail.len())
        && id[id.len() - tail.len()..].eq_ignore_ascii_case(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "exec_01KB6E7M9QX2T4V8N0R53QH8ZT";

    #[test]
    fn ids_in_a_sentence_are_short_and_all_else_is_as_it_was() {
        let text =
            "key of node_01KB6E7M9QX2T4V8N0R53QH8ZT (run_1), a_rather_long_name_of_somebody_else";
        assert_eq!(
            shorten_in(text, "…"),
            "key of node_…3QH8ZT (run_1), a_rather_long_name_of_somebody_else"
        );
        assert_eq!(shorten_in("", "…"), "");
    }

    #[test]
    fn ids_of_ours_shorten_to_their_tail_and_short_foreign_ones_stay_whole() {
        assert_eq!(short(ID, "…"), "exec_…3QH8ZT");
        assert_eq!(short("run_1", "…"), "run_1");
        assert_eq!(short("run_1764000000000_a1b2c3d4", "…"), "run_1764…b2c3d4");
        assert_eq!(
            short("run_1764000000000_a1b2c3d4", "..."),
            "run_1764...b2c3d4"
        );
    }

    #[test]
    fn an_id_is_found_whole_by_prefix_by_tail_and_by_its_short_form() {
        for typed in [
            ID,
            "exec_01KB6E",
            "3QH8ZT",
            "3qh8zt",
            "exec_…3QH8ZT",
            "exec_...3QH8ZT",
            "exec_..3qh8zt",
        ] {
            assert!(Pattern::read(typed).fits(ID), "{typed}");
        }
        for typed in ["8ZT", "exec_02", "run_…3QH8ZT", "exec_…3QH8Z0"] {
            assert!(!Pattern::read(typed).fits(ID), "{typed}");
        }
    }
}
