//! Loads the kernel modules of the initramfs, in the order that the lab worked out for it:
//! /modules/order has one file name a line, dependencies first, and its parameters after a space.

use anyhow::Context;
use rustix::system::finit_module;
use std::ffi::CString;
use std::fs::{self, File};
use std::path::Path;

/// Loads every module that `folder`/order names.
///
/// # Errors
/// With the file that is missing, or that the kernel refused.
pub fn load_all(folder: &Path) -> anyhow::Result<()> {
    let order = folder.join("order");
    let names = fs::read_to_string(&order).with_context(|| format!("{}", order.display()))?;
    for line in names.lines() {
        let (name, parameters) = line.split_once(' ').unwrap_or((line, ""));
        let parameters =
            CString::new(parameters).with_context(|| format!("parameters of {name}"))?;
        let path = folder.join(name);
        let file = File::open(&path).with_context(|| format!("{}", path.display()))?;
        finit_module(&file, &parameters, 0)
            .with_context(|| format!("the kernel refused the module {}", path.display()))?;
    }
    Ok(())
}
