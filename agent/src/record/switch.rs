//! Something that a record has on or off.

use super::words::words;

words! {
    /// On or off.
    Switch { On = "on", Off = "off" }
}
