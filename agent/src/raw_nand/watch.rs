//! Watches raw NAND: follows what is programmed from the beginning, so that what is read and moved
//! later is known; tells the operations of the traced part.

use anyhow::Context;

use super::follower::{Follower, ToldOperations};
use super::operation;
use crate::device::disk::Disk;

/// Raw NAND, and what was programmed into it before.
pub struct NandWatch<'a> {
    nand: &'a Disk,
    follower: Follower,
}

impl<'a> NandWatch<'a> {
    /// Begins at a moment when the device has nothing to do.
    ///
    /// # Errors
    /// If its record cannot be read.
    pub fn start(nand: &'a Disk) -> anyhow::Result<Self> {
        let mut follower = Follower::default();
        follower.remember(operation::take(nand.node()).context("the record of NAND")?);
        Ok(Self { nand, follower })
    }

    /// What it did since.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn finish(mut self) -> anyhow::Result<ToldOperations> {
        self.follower.trace(operation::take(self.nand.node()).context("the record of NAND")?);
        Ok(self.follower.tell())
    }
}
