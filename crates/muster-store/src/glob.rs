//! Patterns over memory keys: `*` stands for any run of characters, `?` for one. Nothing else
//! is special. Takes time in the product of the two lengths at worst.

/// Whether the whole text fits the pattern.
pub fn fits(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    // Where the last star is, and how far its run reaches so far.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            Some(_) | None => match star {
                Some((at, reach)) => {
                    star = Some((at, reach + 1));
                    p = at + 1;
                    t = reach + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Whether a text fits one of the patterns; none means all.
pub fn fits_any(patterns: &[String], text: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| fits(pattern, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_are_special_and_nothing_else_is() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("", "", true),
            ("", "a", false),
            ("user.*", "user.name", true),
            ("user.*", "user", false),
            ("u?er", "user", true),
            ("u?er", "uer", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "ab ab ab c", false),
            ("[a]", "a", false),
            ("[a]", "[a]", true),
            ("?", "ü", true),
            ("a**b", "ab", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_hostile_pattern_ends() {
        let text = "a".repeat(5_000);
        assert!(!fits(&("*a".repeat(50) + "b"), &text));
    }
}
