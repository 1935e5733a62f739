//! The values that a script names: literals of SQL, and values drawn from the seed. Reads them from
//! text; `workload/sql` draws them.

use rusqlite::types::Value;

/// Characters or bytes of one drawn value, at most.
const MOST_DRAWN_BYTES: u64 = 64 << 20;
/// The most values that `one` may choose from.
const MOST_CHOICES: usize = 10_000;

/// A value, or what one is drawn by.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    Literal(Value),
    /// Uniform, both inclusive.
    Int {
        low: i64,
        high: i64,
    },
    /// Self-similar: 80 % of the draws in the first 20 % of the numbers, and so on within these
    /// (Gray et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994, 3.2).
    Skewed {
        low: i64,
        high: i64,
    },
    /// A whole number, exponential of this mean.
    Exponential {
        mean: u64,
    },
    /// Letters.
    Text {
        shortest: usize,
        longest: usize,
    },
    Blob {
        shortest: usize,
        longest: usize,
    },
    One(Vec<Value>),
    /// A new key of a name, by its number in `ScriptNames`.
    Key(usize),
    /// A key that was given before.
    Known(usize),
    /// The same, the latest the likeliest.
    Recent(usize),
    /// The value that a `let` gave.
    Variable(usize),
}

/// Names in the order in which they were first met.
#[derive(Debug, Clone, Default)]
pub struct ScriptNames(pub Vec<String>);

impl ScriptNames {
    /// The number of a name.
    pub fn number(&mut self, name: &str) -> usize {
        let found = self.0.iter().position(|known| known == name);
        found.unwrap_or_else(|| {
            self.0.push(name.into());
            self.0.len() - 1
        })
    }
}

/// The names that are known beside the text: those of keys, and the variables there are.
pub struct KnownNames<'a> {
    pub keys: &'a mut ScriptNames,
    pub variables: &'a ScriptNames,
}

/// The words that draw a value, as messages list them.
pub const WORDS: &str = "int(LOW,HIGH), skewed(LOW,HIGH), exponential(MEAN), text(LENGTH), \
    blob(LENGTH), zeroblob(LENGTH), one(VALUE,...), key(NAME), known(NAME), recent(NAME)";

/// A place in a text that is read from its beginning; what is wrong is told with its offset.
pub struct ValueReader<'a> {
    text: &'a str,
    pub at: usize,
}

/// A fault, and the byte of the text at which it is.
pub type Wrong = (usize, String);

impl<'a> ValueReader<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Return whether the next character is this one; it is taken then.
    pub fn takes(&mut self, wanted: char) -> bool {
        self.skip_space();
        let is_there = self.rest().starts_with(wanted);
        self.at += if is_there { wanted.len_utf8() } else { 0 };
        is_there
    }

    fn expect(&mut self, wanted: char) -> Result<(), Wrong> {
        if self.takes(wanted) { Ok(()) } else { Err(self.wrong(format!("{wanted} is missing"))) }
    }

    pub fn wrong(&self, what: impl Into<String>) -> Wrong {
        (self.at, what.into())
    }

    /// A name: letters, digits, `_`, `.` and `-`.
    pub fn word(&mut self) -> &'a str {
        self.skip_space();
        let is_word = |byte: char| byte.is_alphanumeric() || "_.-".contains(byte);
        let rest = self.rest();
        let end = rest.find(|byte| !is_word(byte)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// That nothing follows.
    ///
    /// # Errors
    /// If something does.
    pub fn end(&mut self) -> Result<(), Wrong> {
        self.skip_space();
        if self.rest().is_empty() { Ok(()) } else { Err(self.wrong("nothing may follow here")) }
    }

    /// A value, literal or drawn.
    ///
    /// # Errors
    /// If there is none.
    pub fn expression(&mut self, known: &mut KnownNames<'_>) -> Result<Expression, Wrong> {
        self.skip_space();
        let begin = self.at;
        if let Some(literal) = self.literal()? {
            return Ok(Expression::Literal(literal));
        }
        let word = self.word();
        self.word_meaning(begin, word, known)
    }

    /// Return what a word means whose arguments may follow.
    ///
    /// # Errors
    /// If it means nothing, or its arguments are not as they must be.
    pub fn word_meaning(
        &mut self,
        begin: usize,
        word: &str,
        known: &mut KnownNames<'_>,
    ) -> Result<Expression, Wrong> {
        if !self.rest().starts_with('(') {
            if let Some(variable) = known.variables.0.iter().position(|name| name == word) {
                return Ok(Expression::Variable(variable));
            }
            if word == "key" {
                return Ok(Expression::Key(known.keys.number("")));
            }
            let what = format!("{word:?} is neither a value of `let` nor one of {WORDS}");
            return Err((begin, what));
        }
        self.expect('(')?;
        let found = match word {
            "int" | "skewed" => {
                let (low, high) = self.bounds()?;
                match word {
                    "int" => Expression::Int { low, high },
                    _ => Expression::Skewed { low, high },
                }
            }
            "exponential" => {
                let mean = u64::try_from(self.integer()?);
                let mean = mean.ok().filter(|mean| *mean <= 1 << 40);
                let what = || (begin, "the mean must be 0 to 2^40".to_owned());
                Expression::Exponential { mean: mean.ok_or_else(what)? }
            }
            "text" | "blob" => {
                let (shortest, longest) = self.lengths(begin)?;
                match word {
                    "text" => Expression::Text { shortest, longest },
                    _ => Expression::Blob { shortest, longest },
                }
            }
            "zeroblob" => {
                let (length, longest) = self.lengths(begin)?;
                if length != longest {
                    return Err((
                        begin,
                        "a zeroblob has one length, and blob(m,n) draws one".into(),
                    ));
                }
                Expression::Literal(Value::Blob(vec![0; length]))
            }
            "one" => Expression::One(self.choices(begin)?),
            "key" | "known" | "recent" => {
                let number = known.keys.number(self.word());
                match word {
                    "key" => Expression::Key(number),
                    "known" => Expression::Known(number),
                    _ => Expression::Recent(number),
                }
            }
            _ => return Err((begin, format!("{word:?} is none of {WORDS}"))),
        };
        self.expect(')')?;
        Ok(found)
    }

    fn bounds(&mut self) -> Result<(i64, i64), Wrong> {
        let begin = self.at;
        let low = self.integer()?;
        self.expect(',')?;
        let high = self.integer()?;
        if low > high || high.checked_sub(low).is_none() {
            let what = format!("{low} to {high} is no range of at most 2^63 numbers");
            return Err((begin, what));
        }
        Ok((low, high))
    }

    fn lengths(&mut self, begin: usize) -> Result<(usize, usize), Wrong> {
        let shortest = self.integer()?;
        let longest = if self.takes(',') { self.integer()? } else { shortest };
        let is_length = |length: i64| u64::try_from(length).is_ok_and(|it| it <= MOST_DRAWN_BYTES);
        match (usize::try_from(shortest), usize::try_from(longest)) {
            (Ok(least), Ok(most)) if least <= most && is_length(longest) => Ok((least, most)),
            _ => Err((
                begin,
                format!("{shortest} to {longest} are no lengths of 0 to {MOST_DRAWN_BYTES}"),
            )),
        }
    }

    fn choices(&mut self, begin: usize) -> Result<Vec<Value>, Wrong> {
        let mut choices = Vec::new();
        loop {
            let wrong = self.wrong("a literal is missing: 'text', x'00ff', NULL or a number");
            choices.push(self.literal()?.ok_or(wrong)?);
            if choices.len() > MOST_CHOICES {
                return Err((begin, format!("more than {MOST_CHOICES} values to choose from")));
            }
            if !self.takes(',') {
                return Ok(choices);
            }
        }
    }

    fn integer(&mut self) -> Result<i64, Wrong> {
        self.skip_space();
        let begin = self.at;
        match self.literal()? {
            Some(Value::Integer(number)) => Ok(number),
            _ => Err((begin, "a whole number is missing".into())),
        }
    }

    /// A literal of SQL; none where something else stands.
    fn literal(&mut self) -> Result<Option<Value>, Wrong> {
        self.skip_space();
        let rest = self.rest();
        let begin = self.at;
        // Text of which a line could not hold all characters.
        let behind_text = rest.strip_prefix("text").map(str::trim_start);
        if behind_text.is_some_and(|it| it.starts_with("x'") && !rest.starts_with("textx")) {
            self.at += "text".len();
            let Some(Value::Blob(bytes)) = self.literal()? else { return Ok(None) };
            let what = "text x'...' must be UTF-8";
            let text = String::from_utf8(bytes).map_err(|_| (begin, what.to_owned()))?;
            return Ok(Some(Value::Text(text)));
        }
        let hexadecimal = rest.strip_prefix(['x', 'X']).filter(|rest| rest.starts_with('\''));
        if let Some(quoted) = hexadecimal {
            self.at += 1;
            let digits = self.string(quoted)?;
            let bytes = hex(&digits);
            let what = "an even number of hexadecimal digits must stand in x'...'";
            return bytes.map(|bytes| Some(Value::Blob(bytes))).ok_or((begin, what.into()));
        }
        if rest.starts_with('\'') {
            return Ok(Some(Value::Text(self.string(rest)?)));
        }
        if rest.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
            return self.number().map(Some);
        }
        let word = rest.get(..4).filter(|word| word.eq_ignore_ascii_case("NULL"));
        let follows = rest.get(4..).and_then(|rest| rest.chars().next());
        if word.is_some() && !follows.is_some_and(|next| next.is_alphanumeric() || next == '_') {
            self.at += 4;
            return Ok(Some(Value::Null));
        }
        Ok(None)
    }

    fn number(&mut self) -> Result<Value, Wrong> {
        let (begin, rest) = (self.at, self.rest());
        let is_part = |at: usize, byte: u8| {
            byte.is_ascii_digit()
                || byte == b'.'
                || byte.eq_ignore_ascii_case(&b'e')
                || (b"+-".contains(&byte)
                    && (at == 0 || rest.as_bytes()[at - 1].eq_ignore_ascii_case(&b'e')))
        };
        let end = rest.bytes().enumerate().position(|(at, byte)| !is_part(at, byte));
        let text = &rest[..end.unwrap_or(rest.len())];
        self.at += text.len();
        if let Ok(number) = text.parse() {
            return Ok(Value::Integer(number));
        }
        let number: Result<f64, _> = text.parse();
        number.map(Value::Real).map_err(|_| (begin, format!("{text:?} is no number")))
    }

    /// A string in quotes, of which '' is one.
    fn string(&mut self, rest: &str) -> Result<String, Wrong> {
        let begin = self.at;
        let mut text = String::new();
        let mut from = 1;
        loop {
            let Some(quote) = rest[from..].find('\'') else {
                return Err((begin, "a string that does not end".into()));
            };
            text.push_str(&rest[from..from + quote]);
            from += quote + 1;
            if !rest[from..].starts_with('\'') {
                self.at += from;
                return Ok(text);
            }
            text.push('\'');
            from += 1;
        }
    }
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}
