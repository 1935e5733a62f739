//! Parses the text of a script into its head, parts and steps. What is wrong is told with line and
//! column.

use super::expression::{Expression, KnownNames, ScriptNames, ValueReader, Wrong};
use super::lexer::{DIRECTIVES, ScriptItem, ScriptItems, ScriptPlace, SqlScriptError};
use super::statement::{OpenTransaction, SqlPart, SqlScript, SqlStatement, SqlStep};

/// Bytes of a statement or a directive, at most.
const MOST_STATEMENT_BYTES: usize = 16 << 20;
/// The depth to which `repeat` nests, at most.
const MOST_DEPTH: usize = 8;
/// Databases attached to one connection, at most: SQLITE_MAX_ATTACHED (sqlite.org/limits.html).
const MOST_ATTACHED: usize = 10;
const MOST_WEIGHT: u64 = 1_000_000;
/// The file that is `main` where the script does not say.
pub const DEFAULT_DATABASE: &str = "main.db";

/// The use of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptUse {
    /// Before the transactions: makes the tables, or fills them.
    Preparation,
    Transactions,
}

/// The settings of the next statement, from the directives before it.
#[derive(Default)]
struct Ahead {
    arguments: Option<Vec<Expression>>,
    wait_us: Option<Expression>,
    may_fail: bool,
    after: Vec<(String, u32)>,
}

impl Ahead {
    fn is_empty(&self) -> bool {
        let is_none = self.arguments.is_none() && self.wait_us.is_none();
        is_none && !self.may_fail && self.after.is_empty()
    }
}

struct SqlParser<'a, 'k> {
    text: &'a str,
    usage: ScriptUse,
    keys: &'k mut ScriptNames,
    script: SqlScript,
    /// The place of the parser, by offset and by line and column.
    at: (usize, ScriptPlace),
    ahead: Ahead,
    open: OpenTransaction,
    /// The steps of the `repeat`s that have not ended, with the transaction and the statements
    /// before each.
    repeats: Vec<(usize, OpenTransaction, usize)>,
    statements: usize,
    /// `statements` at the beginning of the part.
    before_part: usize,
}

/// Parses a script; `name` is its connection's where it has none of its own.
///
/// # Errors
/// If it is none, with the place.
pub fn parse(
    text: &str,
    name: &str,
    usage: ScriptUse,
    keys: &mut ScriptNames,
) -> Result<SqlScript, SqlScriptError> {
    let script = SqlScript {
        connection: name.into(),
        database: DEFAULT_DATABASE.into(),
        ..SqlScript::default()
    };
    let mut parser = SqlParser {
        text,
        usage,
        keys,
        script,
        at: (0, ScriptPlace { line: 1, column: 1 }),
        ahead: Ahead::default(),
        open: OpenTransaction::default(),
        repeats: Vec::new(),
        statements: 0,
        before_part: 0,
    };
    let mut items = ScriptItems::new(text);
    while let Some(item) = items.next()? {
        match item {
            ScriptItem::Directive { offset, text } => {
                let place = parser.place(offset);
                // What is wrong is told by its offset after `--!`.
                parser.directive(text).map_err(|(wrong, what)| {
                    let column = place.column + 3 + text[..wrong.min(text.len())].chars().count();
                    SqlScriptError::new(ScriptPlace { column, ..place }, what)
                })?;
            }
            ScriptItem::Statement { offset, text } => {
                let place = parser.place(offset);
                parser
                    .statement(place, text)
                    .map_err(|(wrong, what)| SqlScriptError::new(place.after(text, wrong), what))?;
            }
        }
    }
    parser.finish()
}

impl SqlParser<'_, '_> {
    /// The place of an offset that is not before the last one asked for.
    fn place(&mut self, offset: usize) -> ScriptPlace {
        let (before, place) = self.at;
        let place = place.after(&self.text[before..], offset - before);
        self.at = (offset, place);
        place
    }

    fn statement(&mut self, place: ScriptPlace, text: &str) -> Result<(), Wrong> {
        if text.len() > MOST_STATEMENT_BYTES {
            return Err((0, format!("a statement of more than {MOST_STATEMENT_BYTES} bytes")));
        }
        let Ahead { arguments, wait_us, may_fail, after } = std::mem::take(&mut self.ahead);
        let mut known = KnownNames { keys: self.keys, variables: &self.script.variables };
        let mut statement = SqlStatement::read(place, text, arguments, &mut known)?;
        (statement.wait_us, statement.may_fail, statement.after) = (wait_us, may_fail, after);
        self.open.apply(&statement.role);
        self.script.steps.push(SqlStep::Statement(Box::new(statement)));
        self.statements += 1;
        Ok(())
    }

    fn directive(&mut self, text: &str) -> Result<(), Wrong> {
        if text.len() > MOST_STATEMENT_BYTES {
            return Err((0, format!("a line of more than {MOST_STATEMENT_BYTES} bytes")));
        }
        let text = text.trim_end();
        let mut reader = ValueReader::new(text);
        let word = reader.word();
        let mut known = KnownNames { keys: self.keys, variables: &self.script.variables };
        match word {
            "bind" => {
                let mut arguments = vec![reader.expression(&mut known)?];
                while reader.takes(',') {
                    arguments.push(reader.expression(&mut known)?);
                }
                self.ahead.arguments = Some(arguments);
            }
            "wait_us" => self.ahead.wait_us = Some(reader.expression(&mut known)?),
            "may_fail" => self.ahead.may_fail = true,
            "after" => {
                if self.usage == ScriptUse::Preparation {
                    return Err((0, "after is for transaction scripts".into()));
                }
                let file = file_name(&mut reader)?;
                let Ok(statements) = reader.word().parse() else {
                    return Err(reader.wrong("write `--! after FILE.sql STATEMENTS`"));
                };
                self.ahead.after.push((file, statements));
            }
            "repeat" => {
                let times = reader.expression(&mut known)?;
                self.begin_repeat(times)?;
            }
            "end" => self.end_repeat()?,
            "let" => {
                let name = reader.word().to_owned();
                if name.is_empty() || !reader.takes('=') {
                    return Err(reader.wrong("write `--! let NAME = VALUE`"));
                }
                let value = reader.expression(&mut known)?;
                let variable = self.script.variables.number(&name);
                self.script.steps.push(SqlStep::Let { variable, value });
            }
            "transaction" => {
                let name = reader.word();
                let weight = reader.word().parse().ok().filter(|it| (1..=MOST_WEIGHT).contains(it));
                match weight {
                    Some(weight) if !name.is_empty() => self.begin_part(name, weight)?,
                    _ => {
                        let what = format!(
                            "write `--! transaction NAME WEIGHT`, a weight of 1 to {MOST_WEIGHT}"
                        );
                        return Err(reader.wrong(what));
                    }
                }
            }
            "connection" | "database" | "attach" => return self.head(word, reader),
            _ => {
                let what = format!("{word:?} is no directive; there are {}", DIRECTIVES.join(", "));
                return Err((0, what));
            }
        }
        reader.end()
    }

    fn head(&mut self, word: &str, mut reader: ValueReader<'_>) -> Result<(), Wrong> {
        let is_preparation = self.usage == ScriptUse::Preparation;
        if is_preparation && word != "database" {
            return Err((0, format!("{word} is for the head of a transaction script")));
        }
        if !is_preparation && !self.script.steps.is_empty() {
            return Err((0, format!("{word} belongs before the first statement")));
        }
        match word {
            "connection" => {
                reader.skip_space();
                let name = reader.rest();
                if name.is_empty() || name.len() > 200 {
                    return Err(reader.wrong("a name of 1 to 200 bytes is missing"));
                }
                self.script.connection = name.into();
                return Ok(());
            }
            "database" => {
                let file = file_name(&mut reader)?;
                if is_preparation {
                    if self.open.is_open() || !self.repeats.is_empty() {
                        return Err((0, "a transaction or a repeat is open here".into()));
                    }
                    self.script.steps.push(SqlStep::Database(file.clone()));
                }
                self.script.database = file;
            }
            _ => {
                let file = file_name(&mut reader)?;
                let at = reader.at;
                let (separator, name) = (reader.word(), reader.word());
                let is_name = |byte: char| byte.is_ascii_alphanumeric() || byte == '_';
                let taken = ["main", "temp"].contains(&name.to_ascii_lowercase().as_str())
                    || self.script.attached.iter().any(|(_, known)| known == name);
                if !separator.eq_ignore_ascii_case("as")
                    || name.is_empty()
                    || !name.chars().all(is_name)
                    || name.starts_with(|first: char| first.is_ascii_digit())
                    || taken
                {
                    let what = "write `--! attach FILE.db AS NAME`, a NAME of letters that is free";
                    return Err((at, what.into()));
                }
                if self.script.attached.len() >= MOST_ATTACHED {
                    return Err((0, format!("more than {MOST_ATTACHED} databases attached")));
                }
                self.script.attached.push((file, name.into()));
            }
        }
        reader.end()
    }

    fn refuse_ahead(&self) -> Result<(), Wrong> {
        if self.ahead.is_empty() {
            return Ok(());
        }
        Err((0, "bind, wait_us, may_fail and after belong right before a statement".into()))
    }

    fn begin_repeat(&mut self, times: Expression) -> Result<(), Wrong> {
        self.refuse_ahead()?;
        if self.repeats.len() >= MOST_DEPTH {
            return Err((0, format!("repeat nests more than {MOST_DEPTH} deep")));
        }
        self.repeats.push((self.script.steps.len(), self.open.clone(), self.statements));
        self.script.steps.push(SqlStep::Repeat { times, after: 0 });
        Ok(())
    }

    fn end_repeat(&mut self) -> Result<(), Wrong> {
        self.refuse_ahead()?;
        let Some((repeat, open, statements)) = self.repeats.pop() else {
            return Err((0, "there is no repeat that could end".into()));
        };
        if open != self.open {
            let what = "what is repeated must end with as many open transactions as it began";
            return Err((0, what.into()));
        }
        if statements == self.statements {
            return Err((0, "nothing is repeated: there is no statement since repeat".into()));
        }
        self.script.steps.push(SqlStep::Again { repeat });
        let end = self.script.steps.len();
        if let SqlStep::Repeat { after, .. } = &mut self.script.steps[repeat] {
            *after = end;
        }
        Ok(())
    }

    fn begin_part(&mut self, name: &str, weight: u64) -> Result<(), Wrong> {
        self.refuse_ahead()?;
        if self.usage == ScriptUse::Preparation {
            return Err((0, "transaction is for transaction scripts".into()));
        }
        if self.script.parts.is_empty() && !self.script.steps.is_empty() {
            return Err((0, "the first transaction belongs before all statements".into()));
        }
        if self.script.parts.iter().any(|part| part.name == name) {
            return Err((0, format!("there is a transaction {name} already")));
        }
        self.end_part().map_err(|what| (0, what))?;
        let begin = self.script.steps.len();
        self.script.parts.push(SqlPart { name: name.into(), weight, begin, end: begin });
        Ok(())
    }

    /// The part before this place is over, if there is one.
    fn end_part(&mut self) -> Result<(), String> {
        let end = self.script.steps.len();
        if !self.repeats.is_empty() {
            return Err("a repeat has no end".into());
        }
        if let Some(part) = self.script.parts.last_mut() {
            part.end = end;
            if self.before_part == self.statements {
                return Err(format!("transaction {} has no statement", part.name));
            }
            if self.open.is_open() {
                return Err(format!("transaction {} ends without COMMIT", part.name));
            }
        }
        self.before_part = self.statements;
        Ok(())
    }

    fn finish(mut self) -> Result<SqlScript, SqlScriptError> {
        let (_, place) = self.at;
        let wrong = |what: String| SqlScriptError::new(place, what);
        self.refuse_ahead().map_err(|(_, what)| wrong(what))?;
        self.end_part().map_err(wrong)?;
        if self.statements == 0 && self.usage == ScriptUse::Transactions {
            return Err(wrong("there is no statement".into()));
        }
        let Self { mut script, open, .. } = self;
        if script.parts.is_empty() {
            let end = script.steps.len();
            script.parts.push(SqlPart { name: String::new(), weight: 1, begin: 0, end });
        }
        script.ends_open = open.is_open();
        Ok(script)
    }
}

/// The bare name of a database's file.
fn file_name(reader: &mut ValueReader<'_>) -> Result<String, Wrong> {
    let begin = reader.at;
    let name = reader.word();
    let is_bare = !name.is_empty() && name.len() <= 200 && !name.starts_with(['.', '-']);
    let is_ours = ["-journal", "-wal", "-shm"].iter().any(|end| name.ends_with(end));
    if is_bare && !is_ours {
        return Ok(name.into());
    }
    let what = "a file's bare name is missing, such as contacts.db: letters, digits, _, - and .";
    Err((begin, what.into()))
}

#[cfg(test)]
#[path = "parse_test.rs"]
mod tests;
