//! Takes out of a worker's output what would steer a viewer's own terminal or make it answer:
//! clipboard, titles, hyperlinks, notifications, queries. Sequences may be cut anywhere between
//! chunks. What paints is passed on as it came.

/// Where in a sequence the text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Ground,
    /// After ESC.
    Escape,
    /// After ESC and intermediate characters, which are held.
    Intermediate,
    /// In a control sequence, which is held until its end is known.
    Control,
    /// In a control sequence that is too long to be one: dropped up to its end.
    Long,
    /// In a string: OSC, DCS, APC and their like, dropped up to its end.
    Text,
}

/// The longest control sequence that is passed on.
const HELD_MAX: usize = 128;

/// Filters one stream.
#[derive(Debug, Default)]
pub(super) struct Filter {
    state: State,
    held: String,
}

impl Filter {
    /// The next part of a stream, without what is taken out.
    pub(super) fn pass(&mut self, text: &str) -> String {
        if self.state == State::Ground && !text.chars().any(special) {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            self.take(c, &mut out);
        }
        out
    }

    fn take(&mut self, c: char, out: &mut String) {
        match c {
            // CAN and SUB end whatever sequence there is; ESC and the C1 controls begin another.
            '\u{18}' | '\u{1a}' => self.to(State::Ground),
            '\u{1b}' => self.to(State::Escape),
            '\u{9b}' => {
                self.to(State::Control);
                self.held.push_str("\u{1b}[");
            }
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => self.to(State::Text),
            '\u{80}'..='\u{9f}' => self.to(State::Ground),
            _ => match self.state {
                State::Ground => {
                    if c != '\u{5}' {
                        out.push(c);
                    }
                }
                State::Escape => self.escape(c, out),
                State::Intermediate => self.intermediate(c, out),
                State::Control => self.control(c, out),
                State::Long => match c {
                    '\u{0}'..='\u{1f}' => control_character(c, out),
                    '\u{40}'..='\u{7e}' => self.to(State::Ground),
                    _ => {}
                },
                State::Text => {
                    if c == '\u{7}' {
                        self.to(State::Ground);
                    }
                }
            },
        }
    }

    fn to(&mut self, state: State) {
        self.state = state;
        self.held.clear();
    }

    fn escape(&mut self, c: char, out: &mut String) {
        match c {
            '[' => {
                self.to(State::Control);
                self.held.push_str("\u{1b}[");
            }
            // OSC, DCS, SOS, PM, APC, and the title of `screen`.
            ']' | 'P' | 'X' | '^' | '_' | 'k' => self.to(State::Text),
            '\u{20}'..='\u{2f}' => {
                self.to(State::Intermediate);
                self.held.push('\u{1b}');
                self.held.push(c);
            }
            '\u{0}'..='\u{1f}' => control_character(c, out),
            // ESC Z asks who is there; a lone ST ends nothing.
            'Z' | '\\' | '\u{7f}' => self.to(State::Ground),
            '\u{30}'..='\u{7e}' => {
                out.push('\u{1b}');
                out.push(c);
                self.to(State::Ground);
            }
            _ => {
                out.push(c);
                self.to(State::Ground);
            }
        }
    }

    fn intermediate(&mut self, c: char, out: &mut String) {
        match c {
            '\u{0}'..='\u{1f}' => control_character(c, out),
            '\u{20}'..='\u{2f}' if self.held.len() < HELD_MAX => self.held.push(c),
            '\u{30}'..='\u{7e}' => {
                out.push_str(&self.held);
                out.push(c);
                self.to(State::Ground);
            }
            _ => self.to(State::Ground),
        }
    }

    fn control(&mut self, c: char, out: &mut String) {
        match c {
            '\u{0}'..='\u{1f}' => control_character(c, out),
            '\u{20}'..='\u{3f}' => {
                if self.held.len() < HELD_MAX {
                    self.held.push(c);
                } else {
                    self.to(State::Long);
                }
            }
            '\u{40}'..='\u{7e}' => {
                if paints(&self.held[2..], c) {
                    out.push_str(&self.held);
                    out.push(c);
                }
                self.to(State::Ground);
            }
            '\u{7f}' => {}
            _ => {
                out.push(c);
                self.to(State::Ground);
            }
        }
    }
}

/// Whether text with this character in it has to be looked at one by one.
fn special(c: char) -> bool {
    matches!(
        c,
        '\u{5}' | '\u{18}' | '\u{1a}' | '\u{1b}' | '\u{80}'..='\u{9f}'
    )
}

/// Terminals act on control characters within a sequence at once. ENQ asks for an answer.
fn control_character(c: char, out: &mut String) {
    if c != '\u{5}' {
        out.push(c);
    }
}

/// Whether a control sequence paints or sets a mode, and does not ask, report, print or reach
/// for the window.
fn paints(parameters: &str, end: char) -> bool {
    let private = parameters.chars().next().unwrap_or(' ');
    let between = parameters
        .chars()
        .find(|c| ('\u{20}'..='\u{2f}').contains(c));
    match (between, end) {
        // Who are you, where is the cursor, which version, terminal parameters, printing, windows.
        (None, 'c' | 'n' | 'x' | 'i' | 't') => false,
        (None, 'q') => private != '>',
        (None, 'u') => private != '?',
        (None, 'S') => private != '?',
        // Soft reset, cursor style, protection, scrolling aside: these only paint.
        (Some('!'), 'p') | (Some(' '), 'q' | '@' | 'A') | (Some('"'), 'q') => true,
        // Rectangles.
        (Some('$'), 'r' | 't' | 'v' | 'x' | 'z' | '{') | (Some('*'), 'x') => true,
        (Some(_), _) => false,
        (None, _) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> String {
        Filter::default().pass(text)
    }

    /// What is taken out, whole and cut at every place; around it all stays.
    #[test]
    fn what_steers_or_asks_is_taken_out_wherever_it_is_cut() {
        for bad in [
            "\u{1b}]52;c;Y2FuYXJ5\u{7}",
            "\u{1b}]52;c;?\u{1b}\\",
            "\u{1b}]0;title\u{7}",
            "\u{1b}]2;title\u{1b}\\",
            "\u{1b}]8;;https://evil.example\u{7}",
            "\u{1b}]8;;\u{1b}\\",
            "\u{1b}]10;?\u{7}",
            "\u{1b}]1337;File=name=x:AAAA\u{7}",
            "\u{1b}]777;notify;a;b\u{7}",
            "\u{1b}P$qm\u{1b}\\",
            "\u{1b}P+q544e\u{1b}\\",
            "\u{1b}_Gf=100;AAAA\u{1b}\\",
            "\u{1b}^private\u{1b}\\",
            "\u{1b}Xstring\u{1b}\\",
            "\u{1b}ktitle\u{1b}\\",
            "\u{1b}[c",
            "\u{1b}[>c",
            "\u{1b}[=c",
            "\u{1b}[5n",
            "\u{1b}[6n",
            "\u{1b}[?6n",
            "\u{1b}[?996n",
            "\u{1b}[0x",
            "\u{1b}[21t",
            "\u{1b}[8;50;200t",
            "\u{1b}[22;0t",
            "\u{1b}[>q",
            "\u{1b}[?u",
            "\u{1b}[?1;1;0S",
            "\u{1b}[?2026$p",
            "\u{1b}[1$w",
            "\u{1b}[1;1;1;1;1;1*y",
            "\u{1b}[4i",
            "\u{1b}[5i",
            "\u{1b}[#R",
            "\u{1b}Z",
            "\u{5}",
            "\u{9d}52;c;Y2FuYXJ5\u{9c}",
            "\u{9b}6n",
            "\u{90}$qm\u{9c}",
        ] {
            let text = format!("a{bad}b");
            assert_eq!(whole(&text), "ab", "{bad:?}");
            for (at, _) in text.char_indices() {
                let mut filter = Filter::default();
                let mut out = filter.pass(&text[..at]);
                out.push_str(&filter.pass(&text[at..]));
                assert_eq!(out, "ab", "{bad:?} cut at {at}");
            }
            let mut filter = Filter::default();
            let out: String = text
                .chars()
                .map(|c| filter.pass(c.encode_utf8(&mut [0; 4])))
                .collect();
            assert_eq!(out, "ab", "{bad:?} character by character");
        }
    }

    #[test]
    fn what_paints_stays_as_it_came() {
        for good in [
            "plain\r\n\ttext é 漢字 🙂",
            "\u{1b}[31;1mred\u{1b}[0m",
            "\u{1b}[38;2;1;2;3m\u{1b}[4:3m",
            "\u{1b}[2J\u{1b}[H\u{1b}[10;20H\u{1b}[K",
            "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?2004h\u{1b}[?1000h",
            "\u{1b}[2;20r\u{1b}[3S\u{1b}[3T\u{1b}[2L\u{1b}[s\u{1b}[u",
            "\u{1b}[2 q\u{1b}[!p",
            "\u{1b}7\u{1b}8\u{1b}M\u{1b}D\u{1b}E\u{1b}=\u{1b}>\u{1b}c",
            "\u{1b}(B\u{1b})0\u{1b}#8",
            "bell\u{7}",
        ] {
            assert_eq!(whole(good), good);
            for (at, _) in good.char_indices() {
                let mut filter = Filter::default();
                let mut out = filter.pass(&good[..at]);
                out.push_str(&filter.pass(&good[at..]));
                assert_eq!(out, good, "cut at {at}");
            }
        }
    }

    #[test]
    fn sequences_within_sequences_hide_nothing() {
        // A query with a line feed in it is still a query, and the line feed still one.
        assert_eq!(whole("a\u{1b}[6\nnb"), "a\nb");
        // An escape within a sequence begins another.
        assert_eq!(whole("a\u{1b}[3\u{1b}[6nb"), "ab");
        assert_eq!(whole("a\u{1b}]0;x\u{1b}[31mb"), "a\u{1b}[31mb");
        // A cancelled sequence is none.
        assert_eq!(whole("a\u{1b}[6\u{18}nb"), "anb");
        // One that is too long is dropped up to its end.
        let long = format!("a\u{1b}[{}mb", "1;".repeat(500));
        assert_eq!(whole(&long), "ab");
        // ENQ within a sequence asks, too.
        assert_eq!(whole("a\u{1b}[3\u{5}1mb"), "a\u{1b}[31mb");
    }

    #[test]
    fn any_text_comes_out_without_a_query_in_it() {
        // Every pair and triple of the characters that matter, around a query.
        let parts = [
            "\u{1b}", "[", "]", "6n", "52;c;x", "\u{7}", "\\", "P", "m", "\u{18}", "x",
        ];
        for a in parts {
            for b in parts {
                for c in parts {
                    let out = whole(&format!("{a}{b}{c}\u{18}"));
                    assert!(!out.contains("\u{1b}[6n"), "{a:?}{b:?}{c:?}: {out:?}");
                    assert!(!out.contains("\u{1b}]"), "{a:?}{b:?}{c:?}: {out:?}");
                    assert!(!out.contains("\u{1b}P"), "{a:?}{b:?}{c:?}: {out:?}");
                }
            }
        }
    }
}
