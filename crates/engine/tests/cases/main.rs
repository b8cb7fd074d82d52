//! Runs the SQL test cases of `test/sql/cases`, each file against a new database, without Node.js
//! or a server.
//!
//! Usage: `npm run cases -- [PATH] [--complete]`. PATH selects all files whose path contains it.
//! `--complete` writes the actual results into the files; review the difference before you commit
//! it.
#![allow(clippy::print_stdout, clippy::expect_used, reason = "a program for the terminal")]

mod database;
mod parser;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sqllogictest::harness::{Arguments, Failed, Trial, glob, run};
use sqllogictest::{
    ExpectedError, QueryExpect, Record, Runner, StatementExpect, default_normalizer,
    default_validator, parse_file, strict_column_validator,
};

use database::{Kind, Opened};

const COMPLETE: &str = "--complete";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/sql/cases")
}

/// Returns the test files with their paths relative to the folder.
fn files() -> Vec<(String, PathBuf)> {
    let folder = folder();
    let pattern = folder.join("**/*.slt");
    let found = glob(&pattern.to_string_lossy()).expect("the file pattern is valid");
    let name = |path: &Path| path.strip_prefix(&folder).unwrap_or(path).display().to_string();
    found
        .map(|path| path.expect("the folder is readable"))
        .map(|path| (name(&path), path))
        .collect()
}

/// Rejects an expected error whose pattern does not cover the entire message, because such a
/// pattern matches too much.
fn check_patterns(file: &Path) -> Result<(), Failed> {
    for record in parse_file::<Kind>(file)? {
        let (expected, loc) = match &record {
            Record::Statement { expected: StatementExpect::Error(error), loc, .. } => (error, loc),
            Record::Query { expected: QueryExpect::Error(error), loc, .. } => (error, loc),
            _ => continue,
        };
        let is_whole = match expected {
            ExpectedError::Inline(pattern) => {
                pattern.as_str().starts_with('^') && pattern.as_str().ends_with('$')
            }
            ExpectedError::Multiline(_) => true,
            _ => false,
        };
        if !is_whole {
            return Err(format!("{loc}: the pattern of an error is between ^ and $").into());
        }
    }
    Ok(())
}

fn check(file: &Path) -> Result<(), Failed> {
    check_patterns(file)?;
    let opened = Opened::new()?;
    let mut runner = Runner::new(|| async { Ok(opened.session()) });
    runner.with_column_validator(strict_column_validator::<Kind>);
    runner.run_file(file)?;
    Ok(())
}

fn complete(file: &Path) -> Result<(), Box<dyn Error>> {
    let opened = Opened::new()?;
    let mut runner = Runner::new(|| async { Ok(opened.session()) });
    let validate = strict_column_validator::<Kind>;
    // Without a pattern, an expected error would match any error and would never be updated.
    rewrite_patterns(
        file,
        |pattern| if pattern.is_empty() { "^$".into() } else { pattern.into() },
    )?;
    let update =
        runner.update_test_file(file, " ", default_validator, default_normalizer, validate);
    tokio::runtime::Builder::new_multi_thread().build()?.block_on(update)?;
    let is_whole = |pattern: &str| pattern.is_empty() || pattern.starts_with('^');
    let whole = |pattern: &str| format!("^{pattern}$");
    rewrite_patterns(
        file,
        |pattern| if is_whole(pattern) { pattern.into() } else { whole(pattern) },
    )
}

/// Replaces the patterns of expected errors.
fn rewrite_patterns(file: &Path, to: impl Fn(&str) -> String) -> Result<(), Box<dyn Error>> {
    let text = std::fs::read_to_string(file)?;
    let lines = text.lines().map(|line| {
        let heads = ["statement error", "query error"];
        let head = heads.into_iter().find(|head| line.starts_with(head));
        head.map_or_else(
            || line.to_owned(),
            |head| format!("{head} {}", to(line[head.len()..].trim())).trim_end().to_owned(),
        )
    });
    Ok(std::fs::write(file, lines.map(|line| line + "\n").collect::<String>())?)
}

fn complete_all(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let chosen = arguments.filter.as_deref().unwrap_or_default();
    for (name, file) in files().into_iter().filter(|(name, _)| name.contains(chosen)) {
        complete(&file)?;
        println!("{name} is complete");
    }
    Ok(())
}

fn main() -> ExitCode {
    let (flags, rest): (Vec<_>, Vec<_>) = std::env::args().partition(|word| word == COMPLETE);
    let arguments = Arguments::from_iter(rest);
    let chosen = arguments.filter.as_deref().unwrap_or_default();
    if !files().iter().any(|(name, _)| name.contains(chosen)) {
        println!("no file of test/sql/cases has '{chosen}' in its path");
        return ExitCode::FAILURE;
    }
    if !flags.is_empty() {
        return match complete_all(&arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                println!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    let trials = files().into_iter().map(|(name, file)| Trial::test(name, move || check(&file)));
    run(&arguments, trials.collect()).exit_code()
}
