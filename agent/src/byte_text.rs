//! Text of the bytes of a name: of a file, a thread or a program, which need not be UTF-8.

/// Returns text from which the bytes can be had again: a backslash is two, and a byte that is not
/// UTF-8 is \xNN.
pub fn text(bytes: &[u8]) -> String {
    escape(bytes, "\\\\")
}

/// Returns the text of a path that is looked up by it: a backslash stays one.
pub fn path_text(bytes: &[u8]) -> String {
    escape(bytes, "\\")
}

/// Returns the text of a thread's name, which ends with a NUL or with its field.
pub fn comm(field: &[u8]) -> String {
    text(field.split(|&byte| byte == 0).next().unwrap_or_default())
}

fn escape(bytes: &[u8], backslash: &str) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\\' => text.push_str(backslash),
                letter => text.push(letter),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the bytes of a text.
    fn bytes(text: &str) -> Vec<u8> {
        let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
        while let [first, more @ ..] = rest {
            rest = match (first, more) {
                (b'\\', [b'\\', rest @ ..]) => {
                    bytes.push(b'\\');
                    rest
                }
                (b'\\', [b'x', high, low, rest @ ..]) => {
                    let digits = [*high, *low];
                    let digits = std::str::from_utf8(&digits).unwrap();
                    bytes.push(u8::from_str_radix(digits, 16).unwrap());
                    rest
                }
                _ => {
                    bytes.push(*first);
                    more
                }
            };
        }
        bytes
    }

    #[test]
    fn bytes_that_are_not_utf_8_have_text_of_their_own() {
        assert_eq!(text(b"a\\b\xff\xc3\xa9"), "a\\\\b\\xff\u{e9}");
        assert_eq!(path_text(b"a\\b\xff\xc3\xa9"), "a\\b\\xff\u{e9}");
        assert_eq!(comm(b"caf\xe9\0rest"), "caf\\xe9");
        // A name of 15 bytes may end within a letter.
        assert_eq!(comm("базаданных".as_bytes().split_at(15).0), "базадан\\xd0");
    }

    proptest! {
        #[test]
        fn no_two_names_have_one_text(name in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assert_eq!(bytes(&text(&name)), name);
        }
    }
}
