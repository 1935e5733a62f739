//! Values in the log of a process, and the fields that its records are made of
//! (agent/preload/values.c).

/// Of a value: only its length is there.
const WITHOUT_CONTENTS: u32 = 256;

/// A bound value; none of its contents where only shapes are recorded.
#[derive(Debug, Clone, PartialEq)]
pub enum LoggedValue {
    Null,
    Integer { value: Option<i64>, length_bytes: u64 },
    Real(Option<f64>),
    Text { text: Option<Vec<u8>>, length_bytes: u64 },
    Blob { blob: Option<Vec<u8>>, length_bytes: u64 },
    ZeroBlob { length_bytes: u64 },
    Pointer,
}

/// What happens to a statement's parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum Binding {
    Bound { parameter: u32, value: LoggedValue },
    Cleared,
}

/// Their length in bytes, and the values.
pub fn bindings(fields: &mut LogFields) -> Option<Vec<Binding>> {
    let length = fields.u32()? as usize;
    let mut values = LogFields(fields.take(length)?);
    let mut bindings = Vec::new();
    while !values.0.is_empty() {
        bindings.push(binding(&mut values)?);
    }
    Some(bindings)
}

fn binding(fields: &mut LogFields) -> Option<Binding> {
    let (parameter, kind, length_bytes) = (fields.u32()?, fields.u32()?, fields.u64()?);
    let has_contents = kind & WITHOUT_CONTENTS == 0;
    let mut contents = || {
        let length = if has_contents { usize::try_from(length_bytes).ok()? } else { 0 };
        fields.take(length)
    };
    let value = match kind & !WITHOUT_CONTENTS {
        1 if has_contents => {
            let value = i64::from_ne_bytes(contents()?.try_into().ok()?);
            LoggedValue::Integer { value: Some(value), length_bytes: stored_bytes(value) }
        }
        1 => LoggedValue::Integer { value: None, length_bytes },
        2 if has_contents => {
            LoggedValue::Real(Some(f64::from_ne_bytes(contents()?.try_into().ok()?)))
        }
        2 => LoggedValue::Real(None),
        3 => {
            let text = contents()?.to_vec();
            LoggedValue::Text { text: has_contents.then_some(text), length_bytes }
        }
        4 => {
            let blob = contents()?.to_vec();
            LoggedValue::Blob { blob: has_contents.then_some(blob), length_bytes }
        }
        5 => LoggedValue::Null,
        6 => LoggedValue::ZeroBlob { length_bytes },
        kind @ (7 | 8) if has_contents => {
            let text = utf8_of(contents()?, kind == 8);
            LoggedValue::Text { length_bytes: text.len() as u64, text: Some(text) }
        }
        // Its characters are not known: at least half its bytes.
        7 | 8 => LoggedValue::Text { text: None, length_bytes: length_bytes / 2 },
        9 => LoggedValue::Pointer,
        10 => return Some(Binding::Cleared),
        _ => return None,
    };
    Some(Binding::Bound { parameter, value })
}

/// UTF-16 as SQLite stores it in a database of UTF-8; a byte order mark says the order and goes.
fn utf8_of(bytes: &[u8], is_big_endian: bool) -> Vec<u8> {
    let (bytes, is_big_endian) = match bytes {
        [0xfe, 0xff, rest @ ..] => (rest, true),
        [0xff, 0xfe, rest @ ..] => (rest, false),
        _ => (bytes, is_big_endian),
    };
    let unit = |pair: &[u8]| match is_big_endian {
        true => u16::from_be_bytes([pair[0], pair[1]]),
        false => u16::from_le_bytes([pair[0], pair[1]]),
    };
    String::from_utf16_lossy(&bytes.chunks_exact(2).map(unit).collect::<Vec<_>>()).into_bytes()
}

/// Bytes of an integer in SQLite's record format (sqlite.org/fileformat2.html, section 2.1).
fn stored_bytes(value: i64) -> u64 {
    if matches!(value, 0 | 1) {
        return 0;
    }
    let fits = |bytes: &u64| (-(1_i64 << (8 * bytes - 1))..1 << (8 * bytes - 1)).contains(&value);
    [1, 2, 3, 4, 6].into_iter().find(fits).unwrap_or(8)
}

/// Bytes that are taken from the front.
pub struct LogFields<'a>(pub &'a [u8]);

impl<'a> LogFields<'a> {
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_ne_bytes)
    }

    pub fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_ne_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_ne_bytes)
    }

    pub fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_ne_bytes)
    }

    /// To the next zero, which goes too.
    pub fn text(&mut self) -> Option<Vec<u8>> {
        let length = self.0.iter().position(|byte| *byte == 0)?;
        let text = self.take(length + 1)?;
        Some(text[..length].to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_two_bytes_a_character_becomes_utf8() {
        assert_eq!(utf8_of(&[0xe9, 0, 0, 0], false), "\u{e9}\0".as_bytes());
        assert_eq!(utf8_of(&[0xfe, 0xff, 0, 0xe9], false), "\u{e9}".as_bytes());
        assert_eq!([stored_bytes(1), stored_bytes(-128), stored_bytes(i64::MIN)], [0, 1, 8]);
    }
}
