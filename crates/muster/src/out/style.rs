//! Colour, character set and width of one output stream. Knows no state and no table.

use std::os::fd::AsFd;

use unicode_width::UnicodeWidthChar;

/// `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum ColourChoice {
    /// On a terminal, unless the environment says otherwise.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The few looks that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    /// As the rest.
    Plain,
    /// It went well.
    Green,
    /// It failed.
    Red,
    /// It waits for something that needs a look.
    Yellow,
    /// It runs.
    Cyan,
    /// A clock ended it.
    Magenta,
    /// Neither here nor there.
    Dim,
    /// Stands out.
    Bold,
}

impl Colour {
    fn code(self) -> &'static str {
        match self {
            Colour::Plain => "",
            Colour::Green => "32",
            Colour::Red => "31",
            Colour::Yellow => "33",
            Colour::Cyan => "36",
            Colour::Magenta => "35",
            Colour::Dim => "2",
            Colour::Bold => "1",
        }
    }
}

/// A space at which no line ends.
const BOUND: char = '\u{a0}';

/// A text that stays on one line: a command to copy.
pub(crate) fn bound(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// Narrower terminals break lines where they like.
const NARROWEST: usize = 60;

/// How one stream looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Style {
    /// Escape sequences for colour are written.
    pub(crate) colour: bool,
    /// The reader understands UTF-8.
    pub(crate) unicode: bool,
    /// Columns of the terminal, 60 to 160; `None` in a pipe: nothing is cut.
    pub(crate) width: Option<usize>,
    /// The cursor may be moved.
    pub(crate) redraws: bool,
}

impl Style {
    /// A pipe: whole ids, no cuts, no colour.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self {
            colour: false,
            unicode: true,
            width: None,
            redraws: false,
        }
    }

    /// Decides from the flag, the stream and the environment.
    pub(crate) fn find(
        choice: ColourChoice,
        terminal: bool,
        columns: Option<usize>,
        env: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let set = |name: &str| env(name).is_some_and(|value| !value.is_empty());
        let dumb = env("TERM").is_some_and(|term| term == "dumb");
        let colour = match choice {
            ColourChoice::Always => true,
            ColourChoice::Never => false,
            ColourChoice::Auto if set("NO_COLOR") => false,
            ColourChoice::Auto
                if env("CLICOLOR_FORCE").is_some_and(|v| v != "0" && !v.is_empty()) =>
            {
                true
            }
            ColourChoice::Auto => terminal && !dumb,
        };
        Self {
            colour,
            unicode: speaks_utf8(&env),
            width: terminal.then(|| columns.unwrap_or(80).clamp(NARROWEST, 160)),
            // What is wider than the terminal takes more lines than are counted.
            redraws: terminal && !dumb && columns.is_none_or(|columns| columns >= NARROWEST),
        }
    }

    /// Puts a colour around a text.
    pub(crate) fn paint(&self, colour: Colour, text: &str) -> String {
        if !self.colour || colour == Colour::Plain || text.is_empty() {
            return text.to_owned();
        }
        format!("\u{1b}[{}m{text}\u{1b}[0m", colour.code())
    }

    /// What stands for what was left out.
    pub(crate) fn ellipsis(&self) -> &'static str {
        if self.unicode { "…" } else { "..." }
    }

    /// Makes text of ours readable without UTF-8.
    pub(crate) fn words(&self, text: &str) -> String {
        if self.unicode {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '…' => out.push_str("..."),
                '≈' => out.push('~'),
                '≥' => out.push_str(">="),
                '—' | '–' => out.push('-'),
                '·' => out.push('|'),
                '×' => out.push('x'),
                '→' => out.push_str("->"),
                other => out.push(other),
            }
        }
        out
    }

    /// Breaks a sentence between words where the terminal ends; what follows begins at `indent`.
    /// A command in backticks is one word: it is copied whole.
    pub(crate) fn wrapped(&self, indent: usize, text: &str) -> String {
        let Some(width) = self.width else {
            return text.replace(BOUND, " ");
        };
        let pieces = text.split('`').enumerate().map(|(at, piece)| {
            let command = at % 2 == 1 && piece.starts_with("muster ");
            if command {
                bound(piece)
            } else {
                piece.to_owned()
            }
        });
        let text = pieces.collect::<Vec<_>>().join("`");
        let room = width.saturating_sub(indent).max(20);
        let (mut out, mut used) = (String::with_capacity(text.len()), 0);
        for word in text.split(' ') {
            let wide = visible(word);
            if used > 0 && used + 1 + wide > room {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent));
                used = 0;
            } else if used > 0 {
                out.push(' ');
                used += 1;
            }
            out += word;
            used += wide;
        }
        out.replace(BOUND, " ")
    }

    /// Cuts to so many columns, with a mark that it was cut.
    pub(crate) fn cut(&self, text: &str, columns: usize) -> String {
        if columns_of(text) <= columns {
            return text.to_owned();
        }
        let room = columns.saturating_sub(columns_of(self.ellipsis()));
        let mut out = String::new();
        let mut used = 0;
        for c in text.chars() {
            let wide = c.width().unwrap_or(0);
            if used + wide > room {
                break;
            }
            used += wide;
            out.push(c);
        }
        out + self.ellipsis()
    }
}

/// The first of the three that is set decides; a terminal that says nothing is taken to be a
/// modern one.
fn speaks_utf8(env: impl Fn(&str) -> Option<String>) -> bool {
    for name in ["LC_ALL", "LC_CTYPE", "LANG"] {
        if let Some(value) = env(name).filter(|value| !value.is_empty()) {
            let value = value.to_ascii_uppercase();
            return value.contains("UTF-8") || value.contains("UTF8");
        }
    }
    true
}

/// Columns that a painted text takes.
fn visible(text: &str) -> usize {
    let mut pieces = text.split("\u{1b}[");
    let first = pieces.next().map_or(0, columns_of);
    first
        + pieces
            .map(|piece| columns_of(piece.split_once('m').map_or(piece, |(_, shown)| shown)))
            .sum::<usize>()
}

/// Columns that a text takes.
pub(crate) fn columns_of(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Columns of the terminal behind a stream.
pub(super) fn columns(stream: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Rows of the terminal behind stderr.
pub(crate) fn rows() -> usize {
    rustix::termios::tcgetwinsize(std::io::stderr())
        .ok()
        .map(|size| usize::from(size.ws_row))
        .filter(|rows| *rows > 0)
        .unwrap_or(24)
}

/// Takes control, bidirectional and invisible characters out of text from outside: each becomes
/// its escape. Line breaks and tabs become spaces.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            c if c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}') =>
            {
                out.extend(c.escape_unicode());
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        move |name| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        }
    }

    #[test]
    fn colour_follows_the_flag_then_the_environment_then_the_terminal() {
        for (choice, terminal, pairs, want) in [
            (ColourChoice::Auto, true, &[][..], true),
            (ColourChoice::Auto, false, &[][..], false),
            (ColourChoice::Auto, true, &[("NO_COLOR", "1")][..], false),
            (ColourChoice::Auto, true, &[("NO_COLOR", "")][..], true),
            (ColourChoice::Auto, true, &[("TERM", "dumb")][..], false),
            (
                ColourChoice::Auto,
                false,
                &[("CLICOLOR_FORCE", "1")][..],
                true,
            ),
            (
                ColourChoice::Auto,
                false,
                &[("CLICOLOR_FORCE", "0")][..],
                false,
            ),
            (ColourChoice::Always, false, &[("NO_COLOR", "1")][..], true),
            (
                ColourChoice::Never,
                true,
                &[("CLICOLOR_FORCE", "1")][..],
                false,
            ),
        ] {
            let style = Style::find(choice, terminal, None, env(pairs));
            assert_eq!(style.colour, want, "{choice:?} {terminal} {pairs:?}");
        }
    }

    #[test]
    fn width_is_the_terminals_within_bounds_and_a_pipe_has_none() {
        let of =
            |terminal, columns| Style::find(ColourChoice::Auto, terminal, columns, env(&[])).width;
        assert_eq!(of(true, Some(20)), Some(60));
        assert_eq!(of(true, Some(100)), Some(100));
        assert_eq!(of(true, Some(400)), Some(160));
        assert_eq!(of(true, None), Some(80));
        assert_eq!(of(false, Some(100)), None);
        let redraws =
            |columns| Style::find(ColourChoice::Auto, true, Some(columns), env(&[])).redraws;
        assert!(redraws(60) && !redraws(59));
    }

    #[test]
    fn the_character_set_is_the_first_locale_that_is_set() {
        assert!(speaks_utf8(env(&[("LANG", "en_US.UTF-8")])));
        assert!(!speaks_utf8(env(&[
            ("LC_ALL", "C"),
            ("LANG", "en_US.UTF-8")
        ])));
        assert!(!speaks_utf8(env(&[("LANG", "POSIX")])));
        assert!(speaks_utf8(env(&[])));
    }

    #[test]
    fn a_sentence_is_broken_between_words_and_a_command_is_not() {
        let narrow = Style {
            width: Some(20),
            ..Style::plain()
        };
        assert_eq!(
            narrow.wrapped(0, "see `muster why exec_1`, or wait for it"),
            "see\n`muster why exec_1`,\nor wait for it"
        );
        let told = format!("cancel it: {}", bound("muster cancel exec_1"));
        assert_eq!(
            narrow.wrapped(2, &told),
            "cancel it:\n  muster cancel exec_1"
        );
        assert_eq!(
            Style::plain().wrapped(2, &told),
            "cancel it: muster cancel exec_1"
        );
    }

    #[test]
    fn cutting_counts_columns_and_not_bytes() {
        let style = Style::plain();
        assert_eq!(style.cut("日本語", 6), "日本語");
        assert_eq!(style.cut("日本語", 5), "日本…");
        assert_eq!(style.cut("abcdef", 4), "abc…");
    }
}
