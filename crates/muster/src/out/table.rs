//! Lists as columns. Only the column that explains is cut or moved below; ids never are.

use super::id;
use super::style::{Colour, Style, columns_of};

/// What may happen to a column when the terminal is narrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Give {
    /// Nothing: ids, states, targets.
    Never,
    /// It is left out, the lowest number first.
    Drop(u8),
    /// It is cut with a mark, and below that gets a line of its own.
    Cut,
    /// It goes on below, in its own column, from one word to the next.
    Wrap,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    /// Its title.
    pub(crate) title: &'static str,
    /// What may happen to it.
    pub(crate) give: Give,
}

/// A cell: text of ours or cleaned text of others, and a colour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    colour: Colour,
}

impl Cell {
    /// A plain cell. An empty one is a dash: a blank says nothing.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self::coloured(Colour::Plain, text)
    }

    /// A coloured cell.
    pub(crate) fn coloured(colour: Colour, text: impl Into<String>) -> Self {
        let text = text.into();
        let text = if text.is_empty() {
            "—".to_owned()
        } else {
            text
        };
        Self { text, colour }
    }
}

/// The least that is left of the column that explains before it gets a line of its own.
const EXPLAIN_MIN: usize = 28;
/// A column that goes on below is no narrower for the sake of the others.
const WRAP_MIN: usize = 16;
const GAP: usize = 2;

/// Draws a table, each line with its end.
pub(crate) fn draw(style: &Style, columns: &[Column], rows: &[Vec<Cell>]) -> String {
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    let text_of = |row: &[Cell], at: usize| {
        let text = style.words(&row[at].text);
        // On a terminal ids are short, in sentences, too.
        match style.width.is_some() && columns[at].give == Give::Cut {
            true => id::shorten_in(&text, style.ellipsis()),
            false => text,
        }
    };
    let mut natural: Vec<usize> = (0..columns.len())
        .map(|at| {
            rows.iter()
                .map(|row| columns_of(&text_of(row, at)))
                .chain([columns_of(columns[at].title)])
                .max()
                .unwrap_or(0)
        })
        .collect();
    let cut_at = columns.iter().position(|column| column.give == Give::Cut);
    let mut below = false;
    let mut explain = cut_at.map_or(0, |at| natural[at]);
    if let Some(width) = style.width {
        narrow(width, columns, rows, &mut natural);
        let fixed = |shown: &[usize]| -> usize {
            shown
                .iter()
                .filter(|at| Some(**at) != cut_at)
                .map(|at| natural[*at] + GAP)
                .sum::<usize>()
        };
        let least = cut_at.map_or(0, |at| natural[at].min(EXPLAIN_MIN) + GAP);
        for order in 0..=u8::MAX {
            if fixed(&shown) + least <= width + GAP {
                break;
            }
            if !columns
                .iter()
                .any(|c| matches!(c.give, Give::Drop(n) if n >= order))
            {
                break;
            }
            shown.retain(|at| columns[*at].give != Give::Drop(order));
        }
        if let Some(at) = cut_at {
            let room = (width + GAP).saturating_sub(fixed(&shown) + GAP);
            if room < natural[at].min(EXPLAIN_MIN) {
                below = true;
                shown.retain(|other| *other != at);
            }
            explain = natural[at].min(room);
        }
    }
    let width_of = |at: usize| {
        if Some(at) == cut_at {
            explain
        } else {
            natural[at]
        }
    };

    let mut out = String::new();
    let titles: Vec<(String, usize, Colour)> = shown
        .iter()
        .map(|at| (columns[*at].title.to_owned(), width_of(*at), Colour::Dim))
        .collect();
    line(style, &titles, &mut out);
    for row in rows {
        let mut lines: Vec<Vec<(String, usize, Colour)>> = Vec::new();
        for (place, at) in shown.iter().enumerate() {
            let text = text_of(row, *at);
            let parts = match columns[*at].give {
                Give::Wrap => wrap(&text, width_of(*at)),
                _ => vec![cut(style, &text, width_of(*at))],
            };
            for (n, part) in parts.into_iter().enumerate() {
                if lines.len() <= n {
                    let blank = |at: &usize| (String::new(), width_of(*at), Colour::Plain);
                    lines.push(shown.iter().map(blank).collect());
                }
                lines[n][place] = (part, width_of(*at), row[*at].colour);
            }
        }
        for cells in &lines {
            line(style, cells, &mut out);
        }
        if let (true, Some(at), Some(width)) = (below, cut_at, style.width)
            && row[at].text != "—"
        {
            let text = cut(style, &text_of(row, at), width - 4);
            out += &format!("    {}\n", style.paint(row[at].colour, &text));
        }
    }
    out
}

/// Gives columns that go on below less room, where all of them side by side do not fit.
fn narrow(width: usize, columns: &[Column], rows: &[Vec<Cell>], natural: &mut [usize]) {
    let all: usize = natural.iter().map(|wide| wide + GAP).sum();
    for (at, column) in columns.iter().enumerate() {
        if column.give != Give::Wrap || all <= width + GAP {
            continue;
        }
        let words = rows.iter().flat_map(|row| row[at].text.split(' '));
        let longest = words.chain([column.title]).map(columns_of).max();
        let over = all - (width + GAP);
        let least = longest.unwrap_or(0).max(WRAP_MIN);
        natural[at] = natural[at].min(natural[at].saturating_sub(over).max(least));
    }
}

/// A cell's lines, from one word to the next.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(last) if columns_of(last) + 1 + columns_of(word) <= width => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Cuts a sentence; an id in it stays whole or goes.
fn cut(style: &Style, text: &str, columns: usize) -> String {
    let cut = style.cut(text, columns);
    let Some(kept) = cut.strip_suffix(style.ellipsis()).filter(|_| cut != text) else {
        return cut;
    };
    let word = kept.rfind(' ').map_or(0, |at| at + 1);
    let whole = text[word..].split(' ').next().unwrap_or_default();
    let is_id = whole.contains(&format!("_{}", style.ellipsis()));
    match is_id && word > 0 && kept.len() < word + whole.len() {
        true => format!("{}{}", &text[..word], style.ellipsis()),
        false => cut,
    }
}

fn line(style: &Style, cells: &[(String, usize, Colour)], out: &mut String) {
    let last = cells.iter().rposition(|(text, ..)| !text.is_empty());
    let cells = &cells[..last.map_or(0, |at| at + 1)];
    for (at, (text, width, colour)) in cells.iter().enumerate() {
        *out += &style.paint(*colour, text);
        if at + 1 < cells.len() {
            let fill = (width + GAP).saturating_sub(columns_of(text));
            out.extend(std::iter::repeat_n(' ', fill));
        }
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_words_goes_on_below_in_its_column() {
        const COLUMNS: &[Column] = &[
            Column {
                title: "MAY",
                give: Give::Wrap,
            },
            Column {
                title: "ID",
                give: Give::Never,
            },
        ];
        let row = |may: &str| vec![Cell::new(may), Cell::new("key_1")];
        let rows = [row("call read operate admin relay"), row("read")];
        let drawn = |width| {
            let style = Style {
                width,
                ..Style::plain()
            };
            draw(&style, COLUMNS, &rows)
        };
        assert_eq!(
            drawn(Some(25)),
            "MAY                 ID\ncall read operate   key_1\nadmin relay\nread                key_1\n"
        );
        assert!(drawn(Some(60)).contains("call read operate admin relay  key_1\n"));
        assert!(drawn(None).contains("call read operate admin relay  key_1\n"));
    }

    #[test]
    fn an_id_in_a_sentence_is_whole_or_not_there() {
        let style = Style {
            width: Some(80),
            ..Style::plain()
        };
        let text = "key of node_…3QH8ZT and more";
        assert_eq!(cut(&style, text, 40), text);
        assert_eq!(cut(&style, text, 25), "key of node_…3QH8ZT and …");
        assert_eq!(cut(&style, text, 15), "key of …");
        assert_eq!(cut(&style, "a long sentence", 9), "a long s…");
    }
}
