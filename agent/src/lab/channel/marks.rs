//! Tells a plugin of QEMU, where there is one, of what this guest does (kernel/memory_model): a
//! store at offset N of the last page of the hand-out memory says the byte N. Without a plugin
//! nobody reads these stores; they are always made, so that a run is the same with and without.

use super::handout::{HandoutError, Region};

/// The page, mapped.
pub struct Marks {
    region: Region,
}

impl Marks {
    /// Maps the page.
    ///
    /// # Errors
    /// As `Region::open`.
    pub fn open() -> Result<Self, HandoutError> {
        Ok(Self { region: Region::open_last_page()? })
    }

    /// A part of the run begins, whose loads and stores are counted from now on, with those of
    /// earlier parts of its name.
    pub fn begin(&mut self, name: &str) {
        self.say(&format!("count {name}"));
    }

    /// Until the next part begins nothing is counted.
    pub fn pause(&mut self) {
        self.say("pause");
    }

    /// Nothing more is counted.
    pub fn end(&mut self) {
        self.say("end");
    }

    /// Says a line of ASCII.
    fn say(&mut self, line: &str) {
        let page = self.region.cells();
        for byte in line.bytes().chain([b'\n']).filter(u8::is_ascii) {
            // SAFETY: a cell may be written through its pointer.
            unsafe { page[usize::from(byte)].as_ptr().write_volatile(0) };
        }
    }
}
