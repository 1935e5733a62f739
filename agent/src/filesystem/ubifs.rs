//! UBIFS, on raw NAND. The kernel makes it on an empty volume, at the first mount; there is no
//! checker.

use super::facts::FilesystemFacts;

pub const FACTS: FilesystemFacts = FilesystemFacts {
    word: "ubifs",
    is_on_raw_nand: true,
    is_recovery_message: is_about_torn_page,
    ..FilesystemFacts::BLOCK_DEFAULTS
};

/// Return whether a line is about a page that a power cut tore: UBI and UBIFS report it as an
/// error, while they recover from it. It is no damage: what matters is whether anything durable was
/// in it. In Linux 6.1 such lines are of:
///
/// - ubi_io_read() in drivers/mtd/ubi/io.c: the page cannot be read.
/// - ubifs_scan() in fs/ubifs/scan.c: it says "bad node" or "garbage" even where it is asked to be
///   quiet. So it is by those who recover next: replay_log_leb(), kill_orphans() and
///   scan_for_master(). Where it is not quiet, ubifs_scanned_corruption() says more.
/// - ubifs_leb_read() in fs/ubifs/io.c: recover_head() in recovery.c reads where the next node will
///   be written, and cleans a page that it cannot read. All others who have it told fail, or scan
///   that block and are not quiet.
fn is_about_torn_page(text: &str) -> bool {
    if text.starts_with("ubi") {
        return text.contains("(ECC error) while reading");
    }
    let message = text.strip_prefix("UBIFS error (").and_then(|rest| rest.split_once("): "));
    let Some((function, words)) = message.and_then(|(_, message)| message.split_once(": ")) else {
        return false;
    };
    match function.trim_end_matches(" [ubifs]") {
        "ubifs_scan" => ["bad node", "garbage"].contains(&words),
        "ubifs_leb_read" => words.ends_with(" failed, error -74"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_a_torn_page_in_recovery_is_no_error() {
        for (text, expected) in [
            ("ubi0 error: ubi_io_read [ubi]: error -74 (ECC error) while reading 2048 bytes", true),
            ("UBIFS error (ubi0:0 pid 1): ubifs_scan [ubifs]: bad node", true),
            (
                "UBIFS error (ubi0:0 pid 1): ubifs_leb_read [ubifs]: \
                 reading 2048 bytes from LEB 10:10240 failed, error -74",
                true,
            ),
            ("UBIFS error (ubi0:0 pid 1): ubifs_leb_read [ubifs]: reading failed, error -5", false),
            ("UBIFS error (ubi0:0 pid 1): ubifs_check_node [ubifs]: bad node at LEB 3:0", false),
            ("UBIFS error (ubi0:0 pid 1): ubifs_scan [ubifs]: LEB 3 scanning failed", false),
            ("EXT4-fs error: bad node", false),
        ] {
            assert_eq!(is_about_torn_page(text), expected, "{text}");
        }
    }
}
