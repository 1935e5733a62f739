//! Gives up what an uploader does not need: all capabilities, and files but the spool, the token,
//! and what looking names up needs. Before that it has read the certificates.

use std::path::Path;

use anyhow::Context;
use landlock::{
    ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, path_beneath_rules,
};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};

/// resolv.conf, hosts, and where the first may link to.
const READ: [&str; 3] = ["/etc", "/run/systemd/resolve", "/run/resolvconf"];

/// Restricts this process for good. A kernel without Landlock leaves files as they are.
///
/// # Errors
/// If the kernel refuses.
pub fn restrict(spool: &Path, token_file: &Path) -> anyhow::Result<()> {
    set_no_new_privs(true).context("no new privileges")?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).context("no capabilities")?;
    // The token may be replaced by another file.
    let token_folder = token_file.parent().filter(|it| !it.as_os_str().is_empty());
    let token_folder = token_folder.unwrap_or(Path::new("."));
    let all = AccessFs::from_all(ABI::V3);
    let read = AccessFs::from_read(ABI::V3);
    let readable = READ.iter().map(Path::new).chain([token_folder]);
    Ruleset::default()
        .handle_access(all)?
        .create()?
        .add_rules(path_beneath_rules(readable, read))?
        .add_rules(path_beneath_rules([spool], all))?
        .restrict_self()
        .context("landlock")?;
    Ok(())
}
