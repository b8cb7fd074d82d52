//! The SQL cases of `test/sql/cases`, each file over a new database, without Node.js or server.
//!
//!   npm run cases -- [PATH] [--complete]
//!
//! PATH chooses the files whose path contains it. `--complete` writes into them what the statements
//! answer now: read the difference before you commit it.
#![allow(clippy::print_stdout, clippy::expect_used, reason = "a program for the terminal")]

mod database;
mod parser;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sqllogictest::harness::{Arguments, Failed, Trial, glob, run};
use sqllogictest::{Runner, default_normalizer, default_validator, strict_column_validator};

use database::{Kind, Opened};

const COMPLETE: &str = "--complete";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/sql/cases")
}

/// The files, each with its path below the folder.
fn files() -> Vec<(String, PathBuf)> {
    let folder = folder();
    let pattern = folder.join("**/*.slt");
    let found = glob(&pattern.to_string_lossy()).expect("the pattern of the files");
    let name = |path: &Path| path.strip_prefix(&folder).unwrap_or(path).display().to_string();
    found
        .map(|path| path.expect("a folder that can be read"))
        .map(|path| (name(&path), path))
        .collect()
}

fn check(file: &Path) -> Result<(), Failed> {
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
    let update =
        runner.update_test_file(file, " ", default_validator, default_normalizer, validate);
    tokio::runtime::Builder::new_multi_thread().build()?.block_on(update)
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
