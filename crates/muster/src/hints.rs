//! The hints are true: every command that this program tells anybody to run exists, with its
//! flags: in what it prints, in its help, and in its own source.

use std::path::Path;

use clap::CommandFactory;
use clap::error::ErrorKind;

use crate::cli::Cli;

/// Every `muster …` of a text: in backticks, behind a colon, behind `hint:`, or a line of help.
fn commands_of(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("muster ") {
        let before = text[..at].chars().next_back();
        let quoted = before == Some('`');
        let told =
            text[..at].ends_with(": ") || text[..at].ends_with("  ") || text[..at].ends_with("· ");
        if !quoted && !told {
            continue;
        }
        let rest = &text[at..];
        let end = rest
            .find(|c| match quoted {
                true => c == '`',
                false => matches!(c, '\n' | '"' | '·' | ';' | ',' | '\\' | '{' | '(' | '`'),
            })
            .unwrap_or(rest.len());
        found.push(rest[..end].trim().to_owned());
    }
    found
}

/// What is wrong with a command line; nothing when it exists.
fn fault(root: &clap::Command, line: &str) -> Option<String> {
    let line = line.split(" -- ").next().unwrap_or(line);
    let line = line.split(['|', '>', '#']).next().unwrap_or(line);
    let mut command = root;
    let mut words = line.split_whitespace().skip(1).peekable();
    let first = words.peek()?;
    // A sentence about the program, not a command.
    if !first.starts_with(|c: char| c.is_ascii_lowercase()) || first.ends_with(':') {
        return None;
    }
    let mut depth = 0;
    while let Some(word) = words.peek() {
        // `nodes enroll|drain` is two of them.
        let Some(sub) = command.find_subcommand(word) else {
            break;
        };
        command = sub;
        depth += 1;
        words.next();
    }
    if depth == 0 {
        return Some(format!("there is no such command: {line}"));
    }
    for word in words {
        let flag = word
            .split(['=', ',', ')', '\'', '`'])
            .next()
            .unwrap_or(word);
        let known = match flag.strip_prefix("--") {
            Some("") | None => continue,
            Some("help") => true,
            Some(long) => command.get_arguments().any(|arg| {
                arg.get_long() == Some(long)
                    || arg.get_all_aliases().is_some_and(|all| all.contains(&long))
            }),
        };
        if !known {
            return Some(format!("no {flag} in: {line}"));
        }
    }
    None
}

fn texts(folder: &Path, out: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts(&path, out);
        } else if path
            .extension()
            .is_some_and(|ext| ext == "rs" || ext == "snap")
            && !path.ends_with("hints.rs")
        {
            out.push((
                path.display().to_string(),
                std::fs::read_to_string(&path).unwrap(),
            ));
        }
    }
}

#[test]
fn every_command_that_is_told_exists() {
    let mut root = Cli::command();
    root.build();
    let mut all = Vec::new();
    texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
    let (mut seen, mut faults) = (0, Vec::new());
    for (file, text) in &all {
        for line in commands_of(text) {
            seen += 1;
            if let Some(fault) = fault(&root, &line) {
                faults.push(format!("{file}: {fault}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(seen > 150, "only {seen} were found");
}

/// The commands of the golden files are whole: the command line takes them as they stand there.
#[test]
fn every_command_of_the_golden_files_is_taken() {
    let mut all = Vec::new();
    texts(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src/snapshots"),
        &mut all,
    );
    let (mut seen, mut faults) = (0, Vec::new());
    for (file, text) in &all {
        // Where nothing is wrapped; in files without such a part, everywhere.
        let part = text.split_once("== a pipe\n").map_or(&**text, |(_, rest)| {
            rest.split_once("\n== ").map_or(rest, |(part, _)| part)
        });
        for line in commands_of(part) {
            // What a machine says it runs.
            if line.starts_with("muster node 0.") {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            // How a command is written, with places to fill in.
            if line.contains(['<', '[']) {
                continue;
            }
            if !words
                .get(1)
                .is_some_and(|word| word.starts_with(|c: char| c.is_ascii_lowercase()))
            {
                continue;
            }
            seen += 1;
            if let Err(error) = Cli::command().try_get_matches_from(words)
                && error.exit_code() != 0
                // A group of commands has its help.
                && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                // `muster help COMMAND` stands for every command.
                && !line.starts_with("muster help ")
            {
                faults.push(format!("{file}: {line}: {error}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(seen > 20, "only {seen} were found");
}

#[test]
fn a_command_that_does_not_exist_is_found() {
    let mut root = Cli::command();
    root.build();
    assert!(fault(&root, "muster levitate").is_some());
    assert!(fault(&root, "muster agents --levitate").is_some());
    assert!(fault(&root, "muster agents show hello --json").is_none());
}

#[test]
fn every_error_of_the_golden_file_has_a_hint_with_a_command() {
    let golden = include_str!("snapshots/muster__golden__errors.snap");
    let errors = golden.matches("error[").count();
    let hints: Vec<&str> = golden
        .lines()
        .filter(|line| line.contains("hint:"))
        .collect();
    assert_eq!(hints.len(), errors);
    for hint in hints {
        assert!(
            hint.contains('`') || hint.contains("MUSTER_API_KEY"),
            "{hint}"
        );
    }
}
