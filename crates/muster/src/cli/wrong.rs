//! A command line that is not right, as an error like every other: what is wrong, how it is
//! written, and the command that says more. Help and version are not errors and stay clap's.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use muster_wire::Category;

use crate::failure::Failure;
use crate::out::ColourChoice;

/// The failure of a command line; `words` are those after the program's name.
pub(super) fn failure(root: &mut clap::Command, error: &clap::Error, words: &[String]) -> Failure {
    root.build();
    let (path, command) = command_of(root, words);
    let look = match path.is_empty() {
        true => "`muster help` lists the commands".to_owned(),
        false if command.has_subcommands() => {
            format!("`muster help {path}` has its commands and options")
        }
        false => format!("`muster help {path}` has all that it takes, with examples"),
    };
    if matches!(
        error.kind(),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        return Failure::new(Category::Validation, which_command(&path, command)).hint(look);
    }
    let text = error.to_string();
    let mut paragraphs = text.split("\n\n");
    let said = one_line(paragraphs.next().unwrap_or_default());
    let said = said.trim_start_matches("error: ");
    // A bound that is only the type's.
    let said = match said.strip_suffix(" is not in 1..=4294967295") {
        Some(value) => format!("{value} is less than 1"),
        None => said.to_owned(),
    };
    let suggested = suggestion(error, &path, words);
    let mut failure = Failure::new(Category::Validation, said);
    for paragraph in paragraphs {
        let paragraph = paragraph.trim();
        if let Some(usage) = paragraph.strip_prefix("Usage: ") {
            failure = failure.seen(format!("usage: {}", one_line(usage)));
        }
        for tip in paragraph
            .lines()
            .filter_map(|line| line.trim().strip_prefix("tip: "))
        {
            if suggested.is_none() || !tip.contains(" similar ") {
                failure = failure.seen(one_line(tip));
            }
        }
    }
    failure.hint(match suggested {
        Some(suggested) => format!("did you mean {suggested}? {look}"),
        None => look,
    })
}

/// The colour that was asked for on a command line that could not be read.
pub(super) fn colour_of(words: &[String]) -> ColourChoice {
    let asked = words.iter().enumerate().find_map(|(at, word)| {
        match (word.as_str(), word.strip_prefix("--color=")) {
            ("--color", _) => words.get(at + 1).map(String::as_str),
            (_, choice) => choice,
        }
    });
    let choice = asked.and_then(|word| clap::ValueEnum::from_str(word, true).ok());
    choice.unwrap_or_default()
}

/// The command that the words name, and its path without `muster`.
fn command_of<'a>(root: &'a clap::Command, words: &[String]) -> (String, &'a clap::Command) {
    let (mut command, mut path) = (root, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            break;
        }
        if let Some(flag) = word.strip_prefix('-') {
            let takes_value = command.get_arguments().any(|arg| {
                arg.get_long()
                    .is_some_and(|long| flag == format!("-{long}"))
                    && arg.get_action().takes_values()
                    && arg
                        .get_num_args()
                        .is_none_or(|count| count.min_values() > 0)
            });
            if takes_value {
                words.next();
            }
            continue;
        }
        let Some(sub) = command.find_subcommand(word) else {
            break;
        };
        command = sub;
        path.push(sub.get_name());
    }
    (path.join(" "), command)
}

/// What a group of commands has, where none was named.
fn which_command(path: &str, command: &clap::Command) -> String {
    let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let names: Vec<&str> = subs
        .map(clap::Command::get_name)
        .filter(|name| *name != "help")
        .collect();
    let of = match path.is_empty() {
        true => "`muster`".to_owned(),
        false => format!("`muster {path}`"),
    };
    format!("{of} needs one of its commands: {}", names.join(", "))
}

/// What was meant, where something is like what was typed; the likest first.
fn suggestion(error: &clap::Error, path: &str, words: &[String]) -> Option<String> {
    let (typed, likely, is_command) = [
        (
            ContextKind::InvalidSubcommand,
            ContextKind::SuggestedSubcommand,
        ),
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ]
    .into_iter()
    .find_map(|(typed, likely)| {
        let found = strings(error.get(likely)?);
        let is_command = likely == ContextKind::SuggestedSubcommand;
        Some((
            error.get(typed).map(strings).unwrap_or_default(),
            found,
            is_command,
        ))
    })?;
    let typed = typed.first().cloned().unwrap_or_default();
    let mut likely: Vec<String> = likely
        .into_iter()
        .filter(|one| !words.contains(one))
        .collect();
    likely.sort_by(|a, b| {
        let like = |one: &str| strsim::jaro_winkler(&typed, one);
        like(b).total_cmp(&like(a))
    });
    let prefix = match path.is_empty() {
        true => "muster ".to_owned(),
        false => format!("muster {path} "),
    };
    let named: Vec<String> = likely
        .iter()
        .map(|one| match is_command {
            true => format!("`{prefix}{one}`"),
            false => one.clone(),
        })
        .collect();
    (!named.is_empty()).then(|| named.join(" or "))
}

fn strings(value: &ContextValue) -> Vec<String> {
    match value {
        ContextValue::String(one) => vec![one.clone()],
        ContextValue::Strings(all) => all.clone(),
        _ => Vec::new(),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use crate::golden::keep;
    use crate::out::Style;
    use clap::CommandFactory;

    /// What people are told of a wrong command line.
    fn told(style: &Style, line: &str) -> String {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let mut command = Cli::command();
        let with_name = ["muster".to_owned()].into_iter().chain(words.clone());
        let error = command.try_get_matches_from_mut(with_name).unwrap_err();
        let failure = failure(&mut command, &error, &words);
        assert_eq!(failure.exit_code(), 2);
        failure.text(style)
    }

    #[test]
    fn a_wrong_command_line_is_an_error_with_a_hint() {
        let all = [
            "call",
            "agnts",
            "keys lst",
            "node --json",
            "--json",
            "executions --sate failed",
            "executions --limit 0",
            "executions --limit",
            "usage --by functon",
            "nodes pin edge-1 gone",
            "call a.b --async --wait",
            "agents show",
            "spawn",
            "spawn python agent.py",
            "--server http://x agnts",
            "agents --json=3",
        ];
        keep("wrong", |style| {
            let mut text = String::new();
            for line in all {
                let told = told(style, line);
                assert!(!told.contains("For more information"), "{told}");
                let hint = told.rsplit_once("hint:").map(|(_, hint)| hint.to_owned());
                assert!(hint.unwrap_or_default().contains("muster help"), "{told}");
                text += &format!("$ {line}\n{told}");
            }
            text
        });
    }

    #[test]
    fn the_colour_is_that_of_the_line() {
        let colour =
            |line: &str| colour_of(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(colour("agnts --color never"), ColourChoice::Never);
        assert_eq!(colour("agnts --color=always"), ColourChoice::Always);
        assert_eq!(colour("agnts --color odd"), ColourChoice::default());
        assert_eq!(colour("agnts"), ColourChoice::default());
    }
}
