//! Which load a record asks for beside its workload.

use super::words::words;

words! {
    /// What goes on in the background.
    Background { None = "none", Video = "video", Cpu = "cpu", Sqlite = "sqlite" }
}
