//! Names for a script's paths in a directory of ours: takes paths as they were recorded, of
//! whatever bytes; gives relative ones that lead nowhere else, none of them to two files.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Longest name of ours, so that with a number it is shorter than NAME_MAX, 255.
const MOST_NAME_BYTES: usize = 200;
/// Deepest directory: the path stays far shorter than PATH_MAX, 4096.
const MOST_DEPTH: usize = 12;

/// The components of a path, with `.` and `..` done: above the root is the root, as
/// path_resolution(7) has it.
pub fn components(path: &[u8]) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(found.pop()),
            name => found.push(name.to_vec()),
        }
    }
    // What is too deep is one name: it stays another file than all others.
    if found.len() > MOST_DEPTH {
        let deep = found.split_off(MOST_DEPTH - 1).join(&b'/');
        found.push(deep);
    }
    found
}

/// Gives each name of one directory another one.
#[derive(Debug, Default)]
struct Directory {
    given: BTreeMap<Vec<u8>, String>,
    taken: BTreeMap<String, u64>,
}

impl Directory {
    fn name(&mut self, recorded: &[u8]) -> String {
        if let Some(name) = self.given.get(recorded) {
            return name.clone();
        }
        let plain = plain(recorded);
        // Plain names have no tilde, so that none is taken by chance. A filesystem may not tell
        // upper case from lower: files that differ in nothing else get different names as well.
        let times = self.taken.entry(plain.to_lowercase()).or_default();
        let name = if *times == 0 { plain } else { format!("{plain}~{times}") };
        *times += 1;
        self.given.insert(recorded.to_vec(), name.clone());
        name
    }
}

/// A recorded name with nothing in it that means anything to anybody.
fn plain(recorded: &[u8]) -> String {
    let letter = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => char::from(*byte),
        _ => '_',
    };
    // The end of a name tells what kind of file it is.
    let skipped = recorded.len().saturating_sub(MOST_NAME_BYTES);
    let name: String = recorded[skipped..].iter().map(letter).collect();
    if name.bytes().all(|byte| byte == b'.') { name.replace('.', "_") } else { name }
}

/// The names of a script's files.
#[derive(Debug, Default)]
pub struct MappedPaths {
    directories: BTreeMap<Vec<Vec<u8>>, Directory>,
}

impl MappedPaths {
    /// The name of a path's components: the same for the same, another for every other.
    pub fn of(&mut self, components: &[Vec<u8>]) -> PathBuf {
        let mut path = PathBuf::new();
        for (depth, part) in components.iter().enumerate() {
            let directory = self.directories.entry(components[..depth].to_vec()).or_default();
            path.push(directory.name(part));
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Component;

    use proptest::prelude::*;

    use super::*;

    fn name(path: &str) -> String {
        MappedPaths::default().of(&components(path.as_bytes())).display().to_string()
    }

    #[test]
    fn no_path_leads_out() {
        assert_eq!(name("/data/fb.db-journal"), "data/fb.db-journal");
        assert_eq!(name("/../../etc/passwd"), "etc/passwd");
        assert_eq!(name("../../x"), "x");
        assert_eq!(name("a/../../../b/./c//d"), "b/c/d");
        assert_eq!(name("a b/\u{e9}\n$(x)"), "a_b/_____x_");
        assert_eq!(name(".../~"), "___/_");
    }

    #[test]
    fn names_alike_stay_apart() {
        let mut names = MappedPaths::default();
        let mut of = |path: &str| names.of(&components(path.as_bytes())).display().to_string();
        assert_eq!(of("/a b"), "a_b");
        assert_eq!(of("/a_b"), "a_b~1");
        assert_eq!(of("/A_b"), "A_b~2");
        assert_eq!(of("/a b"), "a_b");
        assert_eq!(of("/a b/x"), "a_b/x");
    }

    proptest! {
        #[test]
        fn names_are_of_files_below_and_of_one_each(
            paths in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..30)
        ) {
            let parts: BTreeSet<_> = paths.iter().map(|path| components(path)).collect();
            let mut names = MappedPaths::default();
            let found: BTreeSet<PathBuf> = parts.iter().map(|parts| names.of(parts)).collect();
            prop_assert_eq!(found.len(), parts.len());
            for path in found {
                prop_assert!(path.components().all(|it| matches!(it, Component::Normal(_))));
                prop_assert!(path.as_os_str().len() < 4000);
                prop_assert!(path.iter().all(|name| name.len() < 255));
            }
        }
    }
}
