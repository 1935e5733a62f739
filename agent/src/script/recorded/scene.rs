//! What is known at a moment of a recording: open files, mappings, names, and how many descriptors
//! are open. A call is looked up here before it becomes a step.

use std::collections::{BTreeMap, HashMap};

use super::names::{Place, ReplayNames};
use super::tables::{DescriptorTables, Opened};
use crate::script::order::Resource;
use crate::script::plan::{Name, PlanText, RecordLock, Slot};

/// Why a call is no step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoStep {
    /// It is about no file of a disk.
    Elsewhere,
    /// Its effect is in other steps.
    Carried,
    LeftOut(&'static str),
}

/// Why a call is left out.
pub const NOT_OPENED: NoStep =
    NoStep::LeftOut("its descriptor is one that no recorded call opened");
pub const NOT_LOOKED_UP: NoStep = NoStep::LeftOut("its path could not be looked up");
pub const TOO_FAR: NoStep = NoStep::LeftOut("it reaches beyond 16 TiB");
pub const TOO_LONG: NoStep = NoStep::LeftOut("it is of more than 64 MiB at once");

/// Most bytes that mappings are filled with at a time: the replay's limit of memory.
const MOST_POPULATED_BYTES: u64 = 1 << 30;

/// A mapping of a file.
#[derive(Debug, Clone, Copy)]
pub struct Mapping {
    pub number: u32,
    pub bytes: u64,
    pub file: Option<(i64, i64)>,
    /// Whether stores to it reach the file.
    pub is_shared: bool,
    /// Bytes of memory that it was filled with.
    pub populated_bytes: u64,
}

/// All that is known at a moment.
#[derive(Debug, Default)]
pub struct Scene {
    pub tables: DescriptorTables,
    pub names: ReplayNames,
    pub texts: Vec<PlanText>,
    pub locks: Vec<RecordLock>,
    /// Of each slot: device and inode of its file.
    files: Vec<Option<(i64, i64)>>,
    /// By process: mappings by their address.
    mappings: HashMap<i64, BTreeMap<u64, Mapping>>,
    pub mapped: usize,
    populated_bytes: u64,
    pub most_populated_bytes: u64,
    open: usize,
    pub most_open: usize,
}

impl Scene {
    /// Of names, before the first call.
    pub fn new(names: ReplayNames) -> Self {
        Self { names, ..Self::default() }
    }

    /// A slot for a file that is about to be opened.
    pub fn new_slot(&mut self, file: Option<(i64, i64)>) -> Slot {
        self.files.push(file);
        (self.files.len() - 1) as Slot
    }

    pub fn slots(&self) -> usize {
        self.files.len()
    }

    /// The file of a slot.
    pub fn file_of(&self, slot: Slot) -> Option<(i64, i64)> {
        self.files[slot as usize]
    }

    /// A slot was opened.
    pub fn note_open(&mut self) {
        self.open += 1;
        self.most_open = self.most_open.max(self.open);
    }

    /// So many slots were closed.
    pub fn note_closed(&mut self, slots: usize) {
        self.open = self.open.saturating_sub(slots);
    }

    /// The slot of a number.
    ///
    /// # Errors
    /// If the number is of no file, or of none that is known.
    pub fn slot(&mut self, thread: i64, number: Option<i64>) -> Result<Slot, NoStep> {
        match self.tables.at(thread, number.ok_or(NOT_OPENED)?) {
            Some(Opened::File(slot)) => Ok(slot),
            Some(Opened::Elsewhere) => Err(NoStep::Elsewhere),
            None => Err(NOT_OPENED),
        }
    }

    /// The name of a path.
    ///
    /// # Errors
    /// If it is the kernel's, or was not looked up.
    pub fn name(&self, path_id: Option<i64>) -> Result<Name, NoStep> {
        match path_id.and_then(|id| self.names.place(id)) {
            Some(Place::Here(name)) => Ok(name),
            Some(Place::Elsewhere) => Err(NoStep::Elsewhere),
            None => Err(NOT_LOOKED_UP),
        }
    }

    /// What a call about a slot has in common with others.
    pub fn resources(&self, slot: Slot, resources: &mut Vec<Resource>) {
        resources.push(Resource::Slot(slot));
        if let Some((device, inode)) = self.file_of(slot) {
            resources.push(Resource::File(device, inode));
        }
    }

    /// A process has mapped a file.
    pub fn map(&mut self, process: i64, address: i64, mapping: Mapping) {
        self.populated_bytes += mapping.populated_bytes;
        self.most_populated_bytes = self.most_populated_bytes.max(self.populated_bytes);
        let addresses = self.mappings.entry(process).or_default();
        if let Some(former) = addresses.insert(address.cast_unsigned(), mapping) {
            self.populated_bytes -= former.populated_bytes;
        }
    }

    /// Whether mappings may be filled with so many bytes more.
    pub fn may_populate(&self, bytes: u64) -> bool {
        self.populated_bytes.saturating_add(bytes) <= MOST_POPULATED_BYTES
    }

    /// The mapping that has an address, and how far into it that is.
    pub fn mapping(&self, process: i64, address: i64) -> Option<(Mapping, u64)> {
        let address = address.cast_unsigned();
        let (begin, mapping) = self.mappings.get(&process)?.range(..=address).next_back()?;
        let offset = address - begin;
        (offset < mapping.bytes).then_some((*mapping, offset))
    }

    /// Whether a process has mapped anything in a range.
    pub fn has_mapping_in(&self, process: i64, address: i64, bytes: i64) -> bool {
        let first = address.cast_unsigned();
        let end = first.saturating_add(bytes.max(0).cast_unsigned());
        self.mapping(process, address).is_some()
            || self.mappings.get(&process).is_some_and(|it| it.range(first..end).next().is_some())
    }

    /// A process takes a mapping away.
    pub fn unmap(&mut self, process: i64, address: i64) {
        if let Some(addresses) = self.mappings.get_mut(&process) {
            let former = addresses.remove(&address.cast_unsigned());
            self.populated_bytes -= former.map_or(0, |it| it.populated_bytes);
        }
    }

    /// A process takes all its mappings away.
    pub fn unmap_all(&mut self, process: i64) -> Vec<u32> {
        let addresses = self.mappings.remove(&process).unwrap_or_default();
        self.populated_bytes -= addresses.values().map(|it| it.populated_bytes).sum::<u64>();
        addresses.into_values().map(|mapping| mapping.number).collect()
    }
}
