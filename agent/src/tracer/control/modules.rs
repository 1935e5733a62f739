//! The kernel's modules: tells when one came or went, because functions have other addresses then.

use std::fs;

/// A text that is another one when a module came, went or is ready now. Empty in a kernel without
/// modules.
pub fn loaded_modules() -> String {
    names_and_addresses(&fs::read_to_string("/proc/modules").unwrap_or_default())
}

/// Of /proc/modules what tells of a module that came, went or is ready now. Its other fields change
/// with every mount: who uses a module, and how many do.
fn names_and_addresses(modules: &str) -> String {
    let fields = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let field = |place: usize| fields.get(place).copied().unwrap_or_default();
        format!("{} {} {}\n", field(0), field(4), field(5))
    };
    modules.lines().map(fields).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_no_new_module_and_one_that_is_ready_now_is() {
        let told = |text: &str| names_and_addresses(text);
        let xfs = "xfs 2445312 1 - Live 0xffffffffc0a00000\nlibcrc32c 12288 1 xfs, Live 0x0\n";
        let used =
            "xfs 2445312 2 - Live 0xffffffffc0a00000\nlibcrc32c 12288 2 xfs,btrfs, Live 0x0\n";
        assert_eq!(told(xfs), told(used));
        for other in ["Live 0xffffffffc0b00000", "Loading 0xffffffffc0a00000"] {
            assert_ne!(told(xfs), told(&xfs.replace("Live 0xffffffffc0a00000", other)));
        }
        assert_ne!(told(xfs), told(&xfs.replace("xfs 2445312", "f2fs 2445312")));
    }
}
