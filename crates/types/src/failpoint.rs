//! Named points where a test can force a failure: a panic, an error or a pause.
//!
//! They are compiled into every build, so tests run the released addon. A point costs one relaxed
//! load unless the process was started with `TIDEMARK_FAILPOINTS`, a list such as
//! `engine.prepare=panic;storage.sync=error;engine.worker=sleep(50)`.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{EngineError, EngineResult, ErrorCode};

/// Environment variable that arms a process's failpoints.
pub const VARIABLE: &str = "TIDEMARK_FAILPOINTS";

static ARMED: AtomicBool = AtomicBool::new(false);
static ACTIONS: OnceLock<HashMap<String, Action>> = OnceLock::new();

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Panic,
    Error,
    SleepMs(u64),
}

/// Reads [`VARIABLE`] once, when a database opens. Has no effect without the variable.
pub fn arm_from_environment() -> EngineResult<()> {
    let Ok(list) = std::env::var(VARIABLE) else { return Ok(()) };
    let actions = parse(&list)?;
    if ACTIONS.set(actions).is_ok() {
        ARMED.store(true, Ordering::Release);
    }
    Ok(())
}

/// Triggers the failure that is armed for the point `name`, if any.
#[inline]
pub fn hit(name: &str) -> EngineResult<()> {
    if ARMED.load(Ordering::Relaxed) { act(name) } else { Ok(()) }
}

#[cold]
#[allow(clippy::panic, reason = "the failpoint exists to force a panic")]
fn act(name: &str) -> EngineResult<()> {
    match ACTIONS.get().and_then(|actions| actions.get(name)) {
        None => Ok(()),
        Some(Action::Panic) => panic!("forced panic at {name}"),
        Some(Action::Error) => {
            Err(EngineError::new(ErrorCode::Io, format!("forced error at {name}")))
        }
        Some(Action::SleepMs(ms)) => {
            std::thread::sleep(std::time::Duration::from_millis(*ms));
            Ok(())
        }
    }
}

fn parse(list: &str) -> EngineResult<HashMap<String, Action>> {
    list.split(';').filter(|entry| !entry.trim().is_empty()).map(parse_entry).collect()
}

fn parse_entry(entry: &str) -> EngineResult<(String, Action)> {
    let invalid = || {
        EngineError::new(
            ErrorCode::InvalidValue,
            format!("invalid entry '{entry}' in {VARIABLE}, expected name=panic|error|sleep(ms)"),
        )
    };
    let (name, action) = entry.split_once('=').ok_or_else(invalid)?;
    let action = match action.trim() {
        "panic" => Action::Panic,
        "error" => Action::Error,
        other => {
            let ms = other.strip_prefix("sleep(").and_then(|rest| rest.strip_suffix(')'));
            Action::SleepMs(ms.and_then(|ms| ms.parse().ok()).ok_or_else(invalid)?)
        }
    };
    Ok((name.trim().to_owned(), action))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_failpoints_is_parsed() {
        let actions = parse("a=panic; b=error;c=sleep(5);").unwrap();
        assert_eq!(actions["a"], Action::Panic);
        assert_eq!(actions["b"], Action::Error);
        assert_eq!(actions["c"], Action::SleepMs(5));
        assert!(parse("a").is_err());
        assert!(parse("a=explode").is_err());
    }

    #[test]
    fn unarmed_failpoints_do_nothing() {
        assert_eq!(hit("anything"), Ok(()));
    }
}
