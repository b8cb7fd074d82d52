//! File name patterns: `*`, `?` and `[a-z]` match within a path component, `**` matches any number
//! of directories, `{a,b}` lists alternatives.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use tidemark_types::bounded::check_stop;
use tidemark_types::{EngineError, EngineResult, ErrorCode};

/// Maximum number of alternatives that one pattern expands to.
const MAX_ALTERNATIVES: usize = 1_000;
/// Maximum length of an alternative, in bytes. No path is longer.
const MAX_BYTES: usize = 4_096;
/// Maximum number of directory entries examined for one pattern.
const MAX_ENTRIES: usize = 200_000;

/// Whether a path is a pattern.
pub(crate) fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '[', '{'])
}

/// Returns the files below `root` that match `pattern`, as sorted paths relative to `root`. Does
/// not follow symbolic links to directories. Hidden names match only a pattern with a leading dot.
pub(crate) fn find(root: &Path, pattern: &str) -> EngineResult<Vec<String>> {
    let mut search = Search::new(root, pattern);
    for alternative in expanded(pattern)? {
        let mut components: Vec<&str> =
            alternative.split('/').filter(|component| !component.is_empty()).collect();
        // Consecutive `**` components are equivalent to a single one.
        components.dedup_by(|next, before| *next == "**" && *before == "**");
        search.visited.clear();
        search.walk("", &components)?;
    }
    Ok(search.found.into_iter().collect())
}

/// Expands each pair of braces into its alternatives.
fn expanded(pattern: &str) -> EngineResult<Vec<String>> {
    let mut out = vec![String::new()];
    let mut rest = pattern;
    loop {
        let braces = rest.find('{').and_then(|open| {
            let close = open + rest[open..].find('}')?;
            Some((open, close))
        });
        let (plain, choices) = match braces {
            Some((open, close)) => (&rest[..open], &rest[open + 1..close]),
            None => (rest, ""),
        };
        let count = choices.split(',').count();
        if out.len() * count > MAX_ALTERNATIVES {
            let message = format!("the file pattern has more than {MAX_ALTERNATIVES} alternatives");
            return Err(EngineError::new(ErrorCode::ResourceLimit, message));
        }
        let mut next = Vec::with_capacity(out.len() * count);
        for before in &out {
            for choice in choices.split(',') {
                if before.len() + plain.len() + choice.len() > MAX_BYTES {
                    let message = format!("the file pattern is longer than {MAX_BYTES} bytes");
                    return Err(EngineError::new(ErrorCode::ResourceLimit, message));
                }
                next.push(format!("{before}{plain}{choice}"));
            }
        }
        out = next;
        match braces {
            Some((_, close)) => rest = &rest[close + 1..],
            None => return Ok(out),
        }
    }
}

struct Search<'a> {
    root: &'a Path,
    pattern: &'a str,
    found: BTreeSet<String>,
    /// Visited directories, each with the number of pattern components still to match there.
    visited: HashSet<(String, usize)>,
    entries: usize,
}

impl<'a> Search<'a> {
    fn new(root: &'a Path, pattern: &'a str) -> Self {
        Self { root, pattern, found: BTreeSet::new(), visited: HashSet::new(), entries: 0 }
    }

    /// Searches the directory `at`, a relative path that is empty or ends in a slash.
    fn walk(&mut self, at: &str, components: &[&str]) -> EngineResult<()> {
        check_stop()?;
        let Some((component, rest)) = components.split_first() else { return Ok(()) };
        // A pattern with several stars can reach the same directory in multiple ways.
        if !self.visited.insert((at.to_owned(), components.len())) {
            return Ok(());
        }
        let across = *component == "**";
        if across && !rest.is_empty() {
            self.walk(at, rest)?;
        }
        for (name, is_directory) in self.entries(at)? {
            let fits = across && !name.starts_with('.') || !across && matches(component, &name);
            if !fits {
                continue;
            }
            if is_directory {
                self.walk(&format!("{at}{name}/"), if across { components } else { rest })?;
            } else if rest.is_empty() {
                self.found.insert(format!("{at}{name}"));
            }
        }
        Ok(())
    }

    /// Returns a directory's entries and whether each is a directory.
    fn entries(&mut self, at: &str) -> EngineResult<Vec<(String, bool)>> {
        // A missing or unreadable directory contains no matching file.
        let Ok(entries) = std::fs::read_dir(self.root.join(at)) else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        for entry in entries.flatten() {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                let message = format!(
                    "'{}' searches more than {MAX_ENTRIES} directory entries: narrow the pattern",
                    self.pattern
                );
                return Err(EngineError::new(ErrorCode::ResourceLimit, message));
            }
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if let Ok(name) = entry.file_name().into_string() {
                names.push((name, is_directory));
            }
        }
        Ok(names)
    }
}

/// Whether a name matches one component of a pattern.
fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Position of the last star in the pattern, and the end of the characters that it has matched
    // so far.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&'*') {
            star = Some((p, n));
            p += 1;
        } else if let Some(next) = one(&pattern, p, name[n]) {
            p = next;
            n += 1;
        } else if let Some((at, used)) = star {
            star = Some((at, used + 1));
            p = at + 1;
            n = used + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// Returns the position after the pattern element that matches `c`; `None` if the element does not
/// match.
fn one(pattern: &[char], at: usize, c: char) -> Option<usize> {
    match pattern.get(at)? {
        '?' => Some(at + 1),
        '[' => {
            let close = at + 2 + pattern.get(at + 2..)?.iter().position(|&c| c == ']')?;
            let negated = matches!(pattern[at + 1], '!' | '^');
            let set = &pattern[at + 1 + usize::from(negated)..close];
            let mut found = false;
            let mut index = 0;
            while index < set.len() {
                if set.len() - index > 2 && set[index + 1] == '-' {
                    found |= (set[index]..=set[index + 2]).contains(&c);
                    index += 3;
                } else {
                    found |= set[index] == c;
                    index += 1;
                }
            }
            (found != negated).then_some(close + 1)
        }
        literal => (*literal == c).then_some(at + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_match_glob_patterns() {
        let cases = [
            ("*.parquet", "a.parquet", true),
            ("*.parquet", "a.csv", false),
            ("*.parquet", ".a.parquet", false),
            (".*", ".a", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("?", "é", true),
            ("?", "", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]x", "]x", false),
            ("[", "[", false),
            ("*", "", true),
            ("**", "ab", true),
        ];
        for (pattern, name, fits) in cases {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
        // Many stars must not cause exponential backtracking.
        assert!(!matches(&"*a".repeat(200), &"a".repeat(150)));
    }

    #[test]
    fn braces_expand_to_all_alternatives() {
        assert_eq!(expanded("{a,b}/{1,2}").unwrap(), ["a/1", "a/2", "b/1", "b/2"]);
        assert_eq!(expanded("a{").unwrap(), ["a{"]);
        assert_eq!(expanded("{a}b{c}").unwrap(), ["abc"]);
        assert_eq!(expanded("").unwrap(), [""]);
        assert!(expanded(&"{a,b}".repeat(11)).is_err());
        assert_eq!(expanded(&"{a}".repeat(4_096)).unwrap(), ["a".repeat(4_096)]);
        assert!(expanded(&"{a}".repeat(15_000)).is_err());
    }

    #[test]
    fn matching_files_are_found_in_path_order() {
        let root = std::env::temp_dir().join(format!("tidemark-pattern-{}", std::process::id()));
        for directory in ["a/b/c", "d", ".hidden"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        for file in ["2.p", "1.p", "a/3.p", "a/b/c/4.p", "d/5.q", ".hidden/6.p"] {
            std::fs::write(root.join(file), "").unwrap();
        }
        let find = |pattern: &str| find(&root, pattern).unwrap();
        assert_eq!(find("*.p"), ["1.p", "2.p"]);
        assert_eq!(find("**/*.p"), ["1.p", "2.p", "a/3.p", "a/b/c/4.p"]);
        assert_eq!(find("{a,d}/*"), ["a/3.p", "d/5.q"]);
        assert_eq!(find("a/**"), ["a/3.p", "a/b/c/4.p"]);
        assert_eq!(find("none/*"), [] as [&str; 0]);
        assert_eq!(find(&format!("{}3.p", "**/".repeat(1_300))), ["a/3.p"]);
        assert_eq!(find(&format!("{}4.p", "**/*/".repeat(3))), ["a/b/c/4.p"]);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
