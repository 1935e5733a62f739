//! The tokens of a script's text, and what is wrong with a script.

use std::fmt;

/// A directive begins with this, at the beginning of a line.
const DIRECTIVE: &str = "--!";

/// The first words of directives.
pub const DIRECTIVES: [&str; 11] = [
    "connection",
    "database",
    "attach",
    "after",
    "bind",
    "wait_us",
    "may_fail",
    "repeat",
    "end",
    "let",
    "transaction",
];

/// Return whether a comment within a statement was meant for a directive: it begins a line, and has
/// one's word. Any other is the statement's own.
fn is_directive_within(before: &str, comment: &str) -> bool {
    let begins_line = before.trim_end_matches([' ', '\t']).ends_with('\n');
    let Some(text) = comment.strip_prefix(DIRECTIVE).filter(|_| begins_line) else { return false };
    let text = text.trim_start_matches([' ', '\t']);
    DIRECTIVES.contains(&&text[..word_bytes(text.as_bytes())])
}

/// A part of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptItem<'a> {
    /// The text behind `--!`.
    Directive { offset: usize, text: &'a str },
    /// A statement without its semicolon.
    Statement { offset: usize, text: &'a str },
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// White space or a comment.
    Space,
    /// A string, or a quoted name.
    Quoted,
    /// A keyword, a name or a number.
    Word,
    /// `?`, `:`, `@`, `$` or `#` with its name.
    Variable,
    Semicolon,
    Other,
    /// A string or a name that does not end.
    Unterminated,
}

/// The token at the beginning of a text that is not empty: what it is, and its bytes.
pub fn token(text: &str) -> (TokenKind, usize) {
    let bytes = text.as_bytes();
    let until = |end: Option<usize>| end.unwrap_or(bytes.len());
    match bytes[0] {
        byte if byte.is_ascii_whitespace() => {
            (TokenKind::Space, until(bytes.iter().position(|byte| !byte.is_ascii_whitespace())))
        }
        b'-' if bytes.get(1) == Some(&b'-') => (TokenKind::Space, until(text.find('\n'))),
        b'/' if bytes.get(1) == Some(&b'*') => {
            (TokenKind::Space, until(text[2..].find("*/").map(|end| end + 4)))
        }
        quote @ (b'\'' | b'"' | b'`') => quoted(bytes, quote),
        b'[' => match text.find(']') {
            Some(end) => (TokenKind::Quoted, end + 1),
            None => (TokenKind::Unterminated, bytes.len()),
        },
        b';' => (TokenKind::Semicolon, 1),
        b'?' | b':' | b'@' | b'$' | b'#' => match word_bytes(&bytes[1..]) {
            0 if bytes[0] != b'?' => (TokenKind::Other, 1),
            length => (TokenKind::Variable, 1 + length),
        },
        byte if is_word(byte) => (TokenKind::Word, word_bytes(bytes)),
        _ => (TokenKind::Other, 1),
    }
}

/// Return whether a byte is of a word: all that is not ASCII is (IdChar() in src/tokenize.c).
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn word_bytes(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !is_word(*byte)).unwrap_or(bytes.len())
}

fn quoted(bytes: &[u8], quote: u8) -> (TokenKind, usize) {
    let mut at = 1;
    while at < bytes.len() {
        if bytes[at] == quote {
            if bytes.get(at + 1) != Some(&quote) {
                return (TokenKind::Quoted, at + 1);
            }
            at += 1;
        }
        at += 1;
    }
    (TokenKind::Unterminated, bytes.len())
}

/// The tokens of a text, with where each begins, without white space and comments.
pub fn tokens(text: &str) -> impl Iterator<Item = (TokenKind, usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            let begin = at;
            let (kind, length) = token(&text[begin..]);
            at += length;
            if kind != TokenKind::Space {
                return Some((kind, begin, &text[begin..at]));
            }
        }
        None
    })
}

/// Return whether a statement is the definition of a trigger, which holds statements itself.
fn is_trigger(text: &str) -> bool {
    let mut words = tokens(text).map(|(_, _, word)| word.to_ascii_uppercase());
    let mut next = || words.next().unwrap_or_default();
    let mut word = next();
    if word == "EXPLAIN" {
        word = next();
        if word == "QUERY" {
            next();
            word = next();
        }
    }
    if word != "CREATE" {
        return false;
    }
    word = next();
    if word == "TEMP" || word == "TEMPORARY" {
        word = next();
    }
    word == "TRIGGER"
}

/// The items of a script, one after the other.
pub struct ScriptItems<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> ScriptItems<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next one; none at the end.
    ///
    /// # Errors
    /// If a string, a name or a statement does not end, or something is no SQL.
    pub fn next(&mut self) -> Result<Option<ScriptItem<'a>>, SqlScriptError> {
        while self.at < self.text.len() {
            let offset = self.at;
            let rest = &self.text[offset..];
            let (kind, length) = token(rest);
            if kind == TokenKind::Space || kind == TokenKind::Semicolon {
                self.at += length;
                if let Some(text) = rest[..length].strip_prefix(DIRECTIVE) {
                    return Ok(Some(ScriptItem::Directive { offset, text }));
                }
                continue;
            }
            if rest.starts_with('.') {
                return Err(self.error(
                    offset,
                    "a command of the sqlite3 shell, which is no SQL; leave the line out",
                ));
            }
            return self.statement(offset).map(Some);
        }
        Ok(None)
    }

    fn statement(&mut self, offset: usize) -> Result<ScriptItem<'a>, SqlScriptError> {
        let text = &self.text[offset..];
        // Known at its first semicolon: what comes before that says what it is.
        let mut trigger = None;
        let (mut end, mut last, mut before_last) = (text.len(), "", "");
        let mut at = 0;
        while at < text.len() {
            let (kind, length) = token(&text[at..]);
            let word = &text[at..at + length];
            match kind {
                TokenKind::Unterminated => {
                    let what = format!(
                        "{} that does not end",
                        if word.starts_with('\'') { "a string" } else { "a quoted name" }
                    );
                    return Err(self.error(offset + at, &what));
                }
                TokenKind::Space if is_directive_within(&text[..at], word) => {
                    let what = "a directive within a statement; end the one before by ;";
                    return Err(self.error(offset + at, what));
                }
                TokenKind::Space => {}
                TokenKind::Semicolon => {
                    let is_trigger = *trigger.get_or_insert_with(|| is_trigger(&text[..at]));
                    if !is_trigger || (last.eq_ignore_ascii_case("END") && before_last == ";") {
                        end = at;
                        break;
                    }
                    (before_last, last) = (last, word);
                }
                _ => (before_last, last) = (last, word),
            }
            at += length;
        }
        self.at = (offset + end + 1).min(self.text.len());
        Ok(ScriptItem::Statement { offset, text: text[..end].trim_end() })
    }

    fn error(&self, offset: usize, what: &str) -> SqlScriptError {
        SqlScriptError::new(ScriptPlace::of(self.text, offset), what)
    }
}

/// A place in a text; both numbers from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptPlace {
    pub line: usize,
    /// In characters.
    pub column: usize,
}

impl ScriptPlace {
    /// Return the place of a byte of a text.
    pub fn of(text: &str, offset: usize) -> Self {
        Self { line: 1, column: 1 }.after(text, offset)
    }

    /// The place that many bytes of `text` after this one, where `text` begins.
    pub fn after(self, text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        match before.rfind('\n') {
            None => Self { line: self.line, column: self.column + before.chars().count() },
            Some(end) => Self {
                line: self.line + before.matches('\n').count(),
                column: 1 + before[end + 1..].chars().count(),
            },
        }
    }
}

impl fmt::Display for ScriptPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}", self.line, self.column)
    }
}

/// A script that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct SqlScriptError {
    pub place: ScriptPlace,
    pub what: String,
}

impl SqlScriptError {
    pub fn new(place: ScriptPlace, what: impl Into<String>) -> Self {
        Self { place, what: what.into() }
    }
}
