//! Records that the agent gets, as JSON from the engineer's machine: jobs of a guest, live cases,
//! their fields, and the words these may have: enumerations that are one set of words in JSON,
//! tables and SQL.

mod case;
mod job;

pub use crate::filesystem::Filesystem;
#[cfg(test)]
pub(crate) use case::tests::small_case;
pub use case::{Allocator, Case, Completion, DeviceModel, LiveCase, LiveSettings, WorkloadFields};
pub use job::{Afterwards, Job, PowerCuts, SelfTest};

/// Defines an enumeration whose JSON names and display are the same words.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $name:ident { $($(#[$of_variant:meta])* $variant:ident = $word:literal),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
        pub enum $name { $($(#[$of_variant])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// The word used in cases, tables and SQL.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// All words, in the variants' order.
            #[allow(dead_code, reason = "not every enumeration is listed")]
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The variant of a word.
            #[allow(dead_code, reason = "not every enumeration is looked up by its word")]
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.word())
            }
        }
    };
}
pub(crate) use words;

words! {
    /// On or off.
    Switch { On = "on", Off = "off" }
}

words! {
    /// Disks made of disks, by device mapper (dm) or md.
    Stack {
        DmLinear = "dm-linear",
        DmStripe = "dm-stripe",
        DmCrypt = "dm-crypt",
        DmMultipath = "dm-multipath",
        DmOnMd = "dm-on-md",
        MdRaid0 = "md-raid0",
        MdRaid1 = "md-raid1",
    }
}

words! {
    /// The load in the background.
    Background { None = "none", Video = "video", Cpu = "cpu", Sqlite = "sqlite" }
}
