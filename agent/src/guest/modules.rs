//! Loads the kernel modules of the initramfs, in the order that the lab worked out for it:
//! /modules/order has one file name a line, dependencies first.

use anyhow::Context;
use rustix::system::finit_module;
use std::ffi::CStr;
use std::fs::{self, File};
use std::path::Path;

const NO_PARAMETERS: &CStr = c"";

/// Loads every module that `folder`/order names.
///
/// # Errors
/// With the file that is missing, or that the kernel refused.
pub fn load_all(folder: &Path) -> anyhow::Result<()> {
    let order = folder.join("order");
    let names = fs::read_to_string(&order).with_context(|| format!("{}", order.display()))?;
    for name in names.lines() {
        let path = folder.join(name);
        let file = File::open(&path).with_context(|| format!("{}", path.display()))?;
        finit_module(&file, NO_PARAMETERS, 0)
            .with_context(|| format!("the kernel refused the module {}", path.display()))?;
    }
    Ok(())
}
