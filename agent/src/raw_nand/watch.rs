//! Watches raw NAND: follows what is programmed from the beginning, so that what is read and moved
//! later is known; tells the operations of the traced part.

use anyhow::Context;

use super::follower::{Follower, ToldOperations};
use super::operation::{self, Operation};
use crate::device::disk::Disk;

/// Raw NAND, what was programmed into it before, and what it did while it was traced.
pub struct NandWatch<'a> {
    nand: &'a Disk,
    follower: Follower,
}

impl<'a> NandWatch<'a> {
    /// Begins; nothing is traced yet.
    pub fn new(nand: &'a Disk) -> Self {
        Self { nand, follower: Follower::default() }
    }

    /// What it did until now is from before the traced part.
    ///
    /// # Errors
    /// If its record cannot be read.
    pub fn begin(&mut self) -> anyhow::Result<()> {
        self.follower.remember(self.take()?);
        Ok(())
    }

    /// What it did since is of the traced part.
    ///
    /// # Errors
    /// If its record cannot be read.
    pub fn collect(&mut self) -> anyhow::Result<()> {
        self.follower.trace(self.take()?);
        Ok(())
    }

    /// The operations of the traced part.
    pub fn finish(self) -> ToldOperations {
        self.follower.tell()
    }

    fn take(&self) -> anyhow::Result<Vec<Operation>> {
        operation::take(self.nand.node()).context("the record of NAND")
    }
}
