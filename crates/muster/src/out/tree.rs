//! A run as a tree of lines, folded to a number of rows. What is not shown is counted.

use std::collections::HashMap;

use super::style::{Colour, Style, columns_of};
use super::{Mark, execution_mark, span};

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Step {
    /// Its id.
    pub(crate) id: String,
    /// The step that called it.
    pub(crate) parent: Option<String>,
    /// `agent.function`.
    pub(crate) target: String,
    /// Its state.
    pub(crate) state: String,
    /// The finer word, if any.
    pub(crate) reason: String,
    /// Why it waits or failed, in a few words.
    pub(crate) why: String,
    /// Milliseconds it took or has taken.
    pub(crate) took_ms: Option<i64>,
    /// Reported by an agent, not dispatched.
    pub(crate) observed: bool,
}

/// Equal siblings become one row from so many on.
const GROUP_MIN: usize = 6;

struct Row {
    branch: String,
    mark: Mark,
    name: String,
    text: String,
    took: String,
    tail: String,
    depth: usize,
    /// It ended well, and so did everything below it.
    settled: bool,
    /// How many steps it stands for.
    steps: usize,
}

/// Draws the tree in at most `rows_max` lines; `tail` stands behind the root.
pub(crate) fn draw(style: &Style, steps: &[Step], tail: &str, rows_max: usize) -> String {
    let ids: HashMap<&str, usize> = steps
        .iter()
        .enumerate()
        .map(|(at, step)| (step.id.as_str(), at))
        .collect();
    let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    for (at, step) in steps.iter().enumerate() {
        // A step whose parent is not here stands beside the root.
        let parent = step
            .parent
            .as_deref()
            .and_then(|parent| ids.get(parent).copied())
            .filter(|parent| *parent != at);
        children.entry(parent).or_default().push(at);
    }
    let mut rows = Vec::new();
    let tree = Tree {
        style,
        steps,
        children: &children,
    };
    for (n, root) in tree.below(None).iter().enumerate() {
        tree.grow(*root, "", "", 0, &mut rows);
        if n == 0
            && let Some(row) = rows.first_mut()
        {
            tail.clone_into(&mut row.tail);
        }
    }
    let hidden = fold(&mut rows, rows_max);
    let mut out = lay_out(style, &rows);
    if hidden > 0 {
        out += &style.words(&format!(
            "{} {} more steps not shown\n",
            style.ellipsis(),
            span::number(hidden as u64)
        ));
    }
    out
}

/// `28 steps, 2 failed, 1 running`.
pub(crate) fn counts(steps: &[Step]) -> String {
    let mut said = match steps.len() {
        1 => "1 step".to_owned(),
        n => format!("{} steps", span::number(n as u64)),
    };
    for state in [
        "failed",
        "timeout",
        "cancelled",
        "running",
        "waiting",
        "queued",
    ] {
        let n = steps.iter().filter(|step| step.state == state).count();
        if n > 0 {
            said += &format!(", {n} {state}");
        }
    }
    said
}

struct Tree<'a> {
    style: &'a Style,
    steps: &'a [Step],
    children: &'a HashMap<Option<usize>, Vec<usize>>,
}

/// Calls may nest 64 deep; whoever claims more is not followed.
const DEPTH_MAX: usize = 80;

impl Tree<'_> {
    fn below(&self, of: Option<usize>) -> &[usize] {
        self.children.get(&of).map_or(&[], Vec::as_slice)
    }

    fn grow(&self, at: usize, branch: &str, trunk: &str, depth: usize, rows: &mut Vec<Row>) {
        let step = &self.steps[at];
        let mine = rows.len();
        let text = match step.why.is_empty() {
            true => step.state.clone(),
            false if step.state == "failed" => format!("failed ({})", step.why),
            false if matches!(step.state.as_str(), "running" | "queued" | "waiting") => {
                step.why.clone()
            }
            false => format!("{} ({})", step.state, step.why),
        };
        rows.push(Row {
            branch: branch.to_owned(),
            mark: execution_mark(&step.state, &step.reason),
            name: if step.observed {
                format!("{} (in its agent)", step.target)
            } else {
                step.target.clone()
            },
            text,
            took: step.took_ms.map_or_else(|| "—".to_owned(), span::duration),
            tail: String::new(),
            depth,
            settled: step.state == "succeeded",
            steps: 1,
        });
        if depth < DEPTH_MAX {
            self.grow_children(at, trunk, depth, rows);
        }
        rows[mine].settled &= rows[mine + 1..].iter().all(|row| row.settled);
    }

    fn grow_children(&self, at: usize, trunk: &str, depth: usize, rows: &mut Vec<Row>) {
        // In the order of the first call of each function.
        let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
        for child in self.below(Some(at)) {
            let target = self.steps[*child].target.as_str();
            match groups.iter_mut().find(|(known, _)| *known == target) {
                Some((_, members)) => members.push(*child),
                None => groups.push((target, vec![*child])),
            }
        }
        let mut entries: Vec<Vec<usize>> = Vec::new();
        for (_, members) in groups {
            if members.len() >= GROUP_MIN {
                entries.push(members);
            } else {
                entries.extend(members.into_iter().map(|member| vec![member]));
            }
        }
        let (tee, corner, pipe) = match self.style.unicode {
            true => ("├ ", "└ ", "│ "),
            false => ("|- ", "`- ", "|  "),
        };
        let blank = " ".repeat(columns_of(pipe));
        let count = entries.len();
        for (n, members) in entries.into_iter().enumerate() {
            let last = n + 1 == count;
            let branch = format!("{trunk}{}", if last { corner } else { tee });
            let below = format!("{trunk}{}", if last { blank.as_str() } else { pipe });
            match members.as_slice() {
                [one] => self.grow(*one, &branch, &below, depth + 1, rows),
                many => rows.push(self.group(many, branch, depth + 1)),
            }
        }
    }

    fn count_below(&self, of: usize, depth: usize) -> usize {
        if depth > DEPTH_MAX {
            return 0;
        }
        let below = self.below(Some(of));
        below.len()
            + below
                .iter()
                .map(|at| self.count_below(*at, depth + 1))
                .sum::<usize>()
    }

    fn group(&self, members: &[usize], branch: String, depth: usize) -> Row {
        let mut by_state: Vec<(&str, usize)> = Vec::new();
        for at in members {
            let state = self.steps[*at].state.as_str();
            match by_state.iter_mut().find(|(known, _)| *known == state) {
                Some((_, n)) => *n += 1,
                None => by_state.push((state, 1)),
            }
        }
        let order = |state: &str| match state {
            "succeeded" => 0,
            "failed" => 1,
            "timeout" => 2,
            "cancelled" => 3,
            _ => 4,
        };
        by_state.sort_by_key(|(state, _)| order(state));
        let mut text: Vec<String> = by_state
            .iter()
            .map(|(state, n)| format!("{n} {state}"))
            .collect();
        let below: usize = members.iter().map(|at| self.count_below(*at, depth)).sum();
        if below > 0 {
            text.push(format!("{} more below", span::number(below as u64)));
        }
        Row {
            branch,
            mark: Mark::GROUP,
            name: format!("{} ×{}", self.steps[members[0]].target, members.len()),
            text: text.join(", "),
            took: members
                .iter()
                .filter_map(|at| self.steps[*at].took_ms)
                .max()
                .map_or_else(|| "—".to_owned(), span::duration),
            tail: String::new(),
            depth,
            settled: by_state.iter().all(|(state, _)| *state == "succeeded"),
            steps: members.len() + below,
        }
    }
}

/// Takes rows away until the rest fits: first what ended well, deepest first, then from the end.
fn fold(rows: &mut Vec<Row>, rows_max: usize) -> usize {
    let count = |rows: &[Row]| rows.iter().map(|row| row.steps).sum::<usize>();
    let all = count(rows);
    // A line is needed to say how many are hidden.
    let room = rows_max.saturating_sub(1).max(1);
    if rows.len() <= rows_max {
        return 0;
    }
    let deepest = rows.iter().map(|row| row.depth).max().unwrap_or(0);
    for depth in (1..=deepest).rev() {
        if rows.len() <= room {
            break;
        }
        rows.retain(|row| row.depth < depth || !row.settled);
    }
    rows.truncate(room);
    all - count(rows)
}

fn lay_out(style: &Style, rows: &[Row]) -> String {
    let left = |row: &Row| {
        format!(
            "{}{} {}",
            row.branch,
            row.mark.text(style),
            style.words(&row.name)
        )
    };
    let left_width = rows
        .iter()
        .map(|row| columns_of(&left(row)))
        .max()
        .unwrap_or(0);
    let took_width = rows
        .iter()
        .map(|row| columns_of(&row.took))
        .max()
        .unwrap_or(0);
    let text_natural = rows
        .iter()
        .map(|row| columns_of(&style.words(&row.text)))
        .max()
        .unwrap_or(0);
    let tail_width = rows
        .iter()
        .map(|row| columns_of(&row.tail))
        .max()
        .unwrap_or(0);
    let (left_width, text_width) = match style.width {
        None => (left_width, text_natural),
        Some(width) => {
            let left_width = left_width.min(width / 2);
            let rest = width.saturating_sub(left_width + took_width + 4);
            (left_width, text_natural.min(rest.max(8)))
        }
    };
    // The id behind the root only where it fits.
    let total = left_width + text_width + took_width + 6 + tail_width;
    let with_tail = style.width.is_none_or(|width| total <= width);
    let mut out = String::new();
    for row in rows {
        let shown = style.cut(&left(row), left_width);
        let plain = columns_of(&shown);
        let painted = shown.replacen(row.mark.text(style), &row.mark.painted(style), 1);
        let text = style.cut(&style.words(&row.text), text_width);
        let took = style.words(&row.took);
        out += &painted;
        out.extend(std::iter::repeat_n(
            ' ',
            left_width.saturating_sub(plain) + 2,
        ));
        out += &style.paint(
            if row.mark == Mark::GROUP {
                Colour::Plain
            } else {
                row.mark.colour
            },
            &text,
        );
        let fill = text_width.saturating_sub(columns_of(&text))
            + 2
            + took_width.saturating_sub(columns_of(&took));
        out.extend(std::iter::repeat_n(' ', fill));
        out += &took;
        if with_tail && !row.tail.is_empty() {
            out += &format!("  {}", style.paint(Colour::Dim, &row.tail));
        }
        out.push('\n');
    }
    out
}
