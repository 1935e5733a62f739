//! The statements of a script, the steps that it consists of, and whether a transaction is open
//! behind a step.

use super::expression::{Expression, KnownNames, ScriptNames, ValueReader, Wrong};
use super::lexer::{ScriptPlace, TokenKind, tokens};

/// Parameters of a statement, at most: SQLITE_MAX_VARIABLE_NUMBER of our build and of Debian's.
const MOST_PARAMETERS: usize = 250_000;

/// The effect of a statement on the transaction that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionRole {
    /// Nothing.
    Plain,
    Begin,
    /// COMMIT, END, or a ROLLBACK of all.
    End,
    Savepoint(String),
    Release(String),
}

/// A statement, with its place in the script.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlStatement {
    /// The place at which it begins.
    pub place: ScriptPlace,
    /// As the script has it.
    pub written: Box<str>,
    /// As it is prepared, where that is something else: with numbered parameters.
    prepared: Option<Box<str>>,
    /// The parts that were replaced: the begin and the end of each in `written`, and its end in
    /// `prepared`.
    replaced: Vec<(usize, usize, usize)>,
    /// The values of its parameters.
    pub arguments: Vec<Expression>,
    /// Think time before it, in us.
    pub wait_us: Option<Expression>,
    /// Whether it may fail.
    pub may_fail: bool,
    /// Files of other scripts, with how many of their statements end before it begins.
    pub after: Vec<(String, u32)>,
    pub role: TransactionRole,
}

impl SqlStatement {
    /// Return the statement of a text; `arguments` are the values that a `bind` gives, and without
    /// one the text says.
    ///
    /// # Errors
    /// If the text names no value that there is, or does what no script may do.
    pub fn read(
        place: ScriptPlace,
        text: &str,
        arguments: Option<Vec<Expression>>,
        known: &mut KnownNames<'_>,
    ) -> Result<Self, Wrong> {
        let role = refuse_or_role(text)?;
        let mut statement = Self {
            place,
            written: text.into(),
            prepared: None,
            replaced: Vec::new(),
            arguments: Vec::new(),
            wait_us: None,
            may_fail: false,
            after: Vec::new(),
            role,
        };
        match arguments {
            Some(arguments) => statement.arguments = arguments,
            None => statement.read_parameters(known)?,
        }
        if statement.arguments.len() > MOST_PARAMETERS {
            return Err((0, format!("has more than {MOST_PARAMETERS} parameters")));
        }
        Ok(statement)
    }

    /// As it is prepared.
    pub fn sql(&self) -> &str {
        self.prepared.as_deref().unwrap_or(&self.written)
    }

    /// Return the journal mode that it sets, as it is written; none where it sets none.
    pub fn journal_mode(&self) -> Option<String> {
        let words: Vec<String> =
            tokens(&self.written).map(|(_, _, word)| word.to_ascii_lowercase()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["pragma", "journal_mode", "=" | "(", mode, ..]
            | ["pragma", _, ".", "journal_mode", "=" | "(", mode, ..] => Some((*mode).to_owned()),
            _ => None,
        }
    }

    /// Return the place in the script of a byte of the prepared text.
    pub fn place_of(&self, prepared_offset: usize) -> ScriptPlace {
        let before = self.replaced.iter().take_while(|(_, _, end)| *end <= prepared_offset);
        let written = match before.last() {
            Some((_, written_end, end)) => written_end + (prepared_offset - end),
            None => prepared_offset,
        };
        // Of what was replaced, the beginning.
        let within = |(begin, end, _): &&(usize, usize, usize)| (*begin..*end).contains(&written);
        let written = self.replaced.iter().find(within).map_or(written, |(begin, _, _)| *begin);
        self.place.after(&self.written, written)
    }

    /// Replaces `:int(1,10)` and its like by `?1` and so on.
    fn read_parameters(&mut self, known: &mut KnownNames<'_>) -> Result<(), Wrong> {
        let text: &str = &self.written;
        let (mut prepared, mut copied) = (String::new(), 0);
        for (kind, begin, word) in tokens(text) {
            if kind != TokenKind::Variable || begin < copied {
                continue;
            }
            let Some(name) = word.strip_prefix(':') else {
                let what = format!("nothing gives {word} a value; write `--! bind ...` before it");
                return Err((begin, what));
            };
            let mut reader = ValueReader::new(text);
            reader.at = begin + word.len();
            self.arguments.push(reader.word_meaning(begin, name, known)?);
            prepared.push_str(&text[copied..begin]);
            prepared.push_str(&format!("?{}", self.arguments.len()));
            self.replaced.push((begin, reader.at, prepared.len()));
            copied = reader.at;
        }
        if copied > 0 {
            prepared.push_str(&text[copied..]);
            self.prepared = Some(prepared.into());
        }
        Ok(())
    }
}

/// The PRAGMAs, and what a script may do with each: those that write scripts have the same list
/// (jojlab/recording/sql_settings.py).
const PRAGMAS: &str = include_str!("pragmas.txt");

/// Return whether a PRAGMA may be in a script; `sets` where it is given a value. Says why not.
///
/// # Errors
/// If not.
pub fn check_pragma(name: &str, sets: bool) -> Result<(), String> {
    let name = name.to_ascii_lowercase();
    let mut rows = PRAGMAS.lines().map(str::split_ascii_whitespace);
    let mut may = rows.find_map(|mut words| (words.next() == Some(&*name)).then_some(words));
    match may.as_mut().and_then(Iterator::next) {
        Some("any" | "change") => Ok(()),
        Some("read" | "field") if !sets => Ok(()),
        Some("field") => {
            let field = may.as_mut().and_then(Iterator::next).unwrap_or_default();
            Err(format!("PRAGMA {name} is set by the case's field {field}; leave it out"))
        }
        Some("read") => {
            Err(format!("PRAGMA {name} may be read by a script, and not set; leave it out"))
        }
        Some("never") => {
            let who = "the case's fields say when there is a checkpoint, and temporary files are \
                       SQLite's own";
            Err(format!("PRAGMA {name} is for no script: {who}; leave it out"))
        }
        _ => Err(format!("PRAGMA {name} is none of those that a script may use; leave it out")),
    }
}

/// Return the effect of a statement on its transaction.
///
/// # Errors
/// If no script may do what it does.
fn refuse_or_role(text: &str) -> Result<TransactionRole, Wrong> {
    let mut words = tokens(text).map(|(_, offset, word)| (offset, word));
    let mut next = || words.next().unwrap_or((0, ""));
    let first = next().1.to_ascii_uppercase();
    let refused = |what: &str| Err((0, what.to_owned()));
    match first.as_str() {
        "ATTACH" => refused("a script attaches by `--! attach FILE.db AS NAME` in its head"),
        "DETACH" => refused("what a script attaches stays attached; leave DETACH out"),
        "VACUUM" if tokens(text).any(|(_, _, word)| word.eq_ignore_ascii_case("INTO")) => {
            refused("VACUUM INTO writes another file, which no script may; write VACUUM")
        }
        "PRAGMA" => {
            let (mut name, mut follows) = (next(), next().1);
            if follows == "." {
                (name, follows) = (next(), next().1);
            }
            check_pragma(name.1.trim_matches(['"', '`', '\'']), follows == "=" || follows == "(")
                .map_err(|what| (name.0, what))?;
            Ok(TransactionRole::Plain)
        }
        "BEGIN" => Ok(TransactionRole::Begin),
        "COMMIT" | "END" => Ok(TransactionRole::End),
        "ROLLBACK" => {
            // ROLLBACK [TRANSACTION] [TO [SAVEPOINT] name]
            let is_partial = tokens(text).any(|(_, _, word)| word.eq_ignore_ascii_case("TO"));
            Ok(if is_partial { TransactionRole::Plain } else { TransactionRole::End })
        }
        "SAVEPOINT" => Ok(TransactionRole::Savepoint(name_of(next().1))),
        "RELEASE" => {
            let mut name = next().1;
            if name.eq_ignore_ascii_case("SAVEPOINT") {
                name = next().1;
            }
            Ok(TransactionRole::Release(name_of(name)))
        }
        _ => Ok(TransactionRole::Plain),
    }
}

/// A savepoint's name; capitals are the same (sqlite.org/lang_savepoint.html).
fn name_of(word: &str) -> String {
    word.trim_matches(['"', '`', '\'', '[', ']']).to_ascii_lowercase()
}

/// One script: its head, and what it does.
#[derive(Debug, Clone, Default)]
pub struct SqlScript {
    /// The name of its connection.
    pub connection: String,
    /// The file that is `main` to it.
    pub database: String,
    /// Further files, with the name that SQL knows each by.
    pub attached: Vec<(String, String)>,
    pub parts: Vec<SqlPart>,
    pub steps: Vec<SqlStep>,
    /// The names of `let`.
    pub variables: ScriptNames,
    /// Whether it ends within a transaction, as what was recorded may.
    pub ends_open: bool,
}

/// A part that is played whole.
#[derive(Debug, Clone)]
pub struct SqlPart {
    /// As `transaction` names it; empty where the script has one part.
    pub name: String,
    pub weight: u64,
    /// Its steps: from this one up to that.
    pub begin: usize,
    pub end: usize,
}

#[derive(Debug, Clone)]
pub enum SqlStep {
    Statement(Box<SqlStatement>),
    /// The steps that follow are done so many times, up to the `Again` before `after`.
    Repeat {
        times: Expression,
        after: usize,
    },
    /// The end of what is repeated, which begins after the step `repeat`.
    Again {
        repeat: usize,
    },
    Let {
        variable: usize,
        value: Expression,
    },
    /// The steps that follow go to this file.
    Database(String),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenTransaction {
    has_begun: bool,
    savepoints: Vec<String>,
}

impl OpenTransaction {
    pub fn is_open(&self) -> bool {
        self.has_begun || !self.savepoints.is_empty()
    }

    /// After one more statement.
    pub fn apply(&mut self, role: &TransactionRole) {
        match role {
            TransactionRole::Plain => {}
            // Within a savepoint, SQLite refuses it.
            TransactionRole::Begin => self.has_begun |= self.savepoints.is_empty(),
            TransactionRole::End => *self = Self::default(),
            TransactionRole::Savepoint(name) => self.savepoints.push(name.clone()),
            TransactionRole::Release(name) => {
                if let Some(at) = self.savepoints.iter().rposition(|open| open == name) {
                    self.savepoints.truncate(at);
                }
            }
        }
    }
}
