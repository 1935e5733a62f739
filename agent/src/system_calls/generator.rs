//! Makes the agent's tables of system calls, and the header of the BPF programs, of table.txt: the
//! build script calls it, and the tests of the agent.

use std::collections::BTreeMap;
use std::fmt::Write;

/// One row of the table.
#[derive(Debug)]
struct CallRow<'a> {
    name: &'a str,
    number: u32,
    /// The facts of the call, by key.
    facts: BTreeMap<&'a str, &'a str>,
}

/// The files that are made, by name.
pub struct GeneratedFiles {
    /// Numbers as constants, and the rows of `NUMBERS`.
    pub numbers: String,
    /// A slice of (number, name, roles, does).
    pub recorded: String,
    /// A slice of (number, name, roles).
    pub replayed: String,
    /// The header of the BPF programs.
    pub header: String,
}

const KEYS: [&str; 9] =
    ["arm64", "i386", "arm", "x32", "recorded", "does", "replayed", "commits", "traced"];

/// Parses the table; panics, naming the row, if it is none.
fn parse(table: &str) -> Vec<CallRow<'_>> {
    let mut rows: Vec<CallRow> = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let mut words = line.split_whitespace();
        if !line.starts_with(' ') {
            let name = words.next().expect("the line is not empty");
            let number = words.next().and_then(|word| word.parse().ok());
            let number = number.unwrap_or_else(|| panic!("{name}: a number on x86_64 comes next"));
            rows.push(CallRow { name, number, facts: BTreeMap::new() });
        }
        let row = rows.last_mut().expect("the first row begins without a blank");
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            assert!(KEYS.contains(&key), "{}: {key}: is none of {KEYS:?}", row.name);
            assert!(row.facts.insert(key, value).is_none(), "{}: {key}: is there twice", row.name);
        }
    }
    rows
}

impl<'a> CallRow<'a> {
    fn list(&self, key: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let words = self.facts.get(key).copied().unwrap_or_default();
        words.split(',').filter(|word| !word.is_empty() && *word != "-")
    }

    fn numbers(&self, key: &str) -> impl Iterator<Item = u32> + use<'a> {
        let (name, key) = (self.name, key.to_owned());
        self.list(&key).map(move |word| {
            word.parse().unwrap_or_else(|_| panic!("{name}: {key}: {word} is no number"))
        })
    }

    /// The roles of a key, as Rust has them.
    fn roles(&self, key: &str, of: &str) -> String {
        self.list(key).map(|role| format!("{of}::{role}, ")).collect()
    }

    /// Return whether the tracer follows it in 32-bit programs too, and does not only name it. What
    /// they give io_submit has another form, which it does not read.
    fn has_role(&self) -> bool {
        self.list("traced").any(|role| !["Named", "File", "Submits"].contains(&role))
    }

    fn is_traced(&self) -> bool {
        self.facts.contains_key("traced")
    }
}

/// Makes the files of a table; panics, naming the row, if it is none.
pub fn generate(table: &str) -> GeneratedFiles {
    let rows = parse(table);
    let mut text = String::new();
    for CallRow { name, number, .. } in &rows {
        writeln!(text, "pub const SYS_{name}: i64 = {number};").expect("a string takes it");
    }
    text.push_str("\n/// Every call of the table.\npub static ROWS: &[SystemCallRow] = &[\n");
    for row in &rows {
        let arm64 = row.numbers("arm64").next();
        let commits = row.list("commits").next().map(|role| format!("CommitRole::{role}"));
        let option =
            |value: Option<String>| value.map_or("None".into(), |it| format!("Some({it})"));
        writeln!(
            text,
            "SystemCallRow {{ name: {:?}, number: {}, arm64: {}, commits: {}, is_traced: {} }},",
            row.name,
            row.number,
            option(arm64.map(|number| number.to_string())),
            option(commits),
            row.is_traced(),
        )
        .expect("a string takes it");
    }
    text.push_str("];\n");
    let recorded = rows.iter().filter(|row| row.facts.contains_key("recorded")).map(|row| {
        let (name, roles) = (row.name, row.roles("recorded", "Role"));
        let does = row.facts.get("does").unwrap_or(&"Plain");
        format!("(system_calls::SYS_{name}, {name:?}, &[{roles}], Does::{does}),\n")
    });
    let replayed = rows.iter().filter(|row| row.facts.contains_key("replayed")).map(|row| {
        let (name, roles) = (row.name, row.roles("replayed", "ArgumentRole"));
        format!("(system_calls::SYS_{name}, {name:?}, &[{roles}]),\n")
    });
    GeneratedFiles {
        numbers: text,
        recorded: format!("&[\n{}]", recorded.collect::<String>()),
        replayed: format!("&[\n{}]", replayed.collect::<String>()),
        header: header(&rows),
    }
}

/// The header: numbers, and what stands between the braces of tables with an entry for each number.
fn header(rows: &[CallRow]) -> String {
    let mut text = "/* Made of agent/src/system_calls/table.txt by generator.rs. */\n\
                    #ifndef JOJ_SYSTEM_CALLS_H\n#define JOJ_SYSTEM_CALLS_H\n\n\
                    /* By the numbers of x86_64. */\nenum {\n"
        .to_owned();
    let mut add = |line: String| writeln!(text, "{line}").expect("a string takes it");
    let upper = |row: &CallRow| row.name.to_uppercase();
    rows.iter().for_each(|row| add(format!("\tCALL_{} = {},", upper(row), row.number)));
    add("};\n\n/* By the numbers of this kernel; CALLS_LIMIT where it has none. */\nenum {".into());
    add("#ifdef __TARGET_ARCH_arm64".into());
    for row in rows {
        let number = row.numbers("arm64").next().map_or("CALLS_LIMIT".into(), |it| it.to_string());
        add(format!("\tOWN_CALL_{} = {number},", upper(row)));
    }
    add("#else".into());
    rows.iter().for_each(|row| add(format!("\tOWN_CALL_{} = {},", upper(row), row.number)));
    add("#endif\n};\n".into());
    let mut define = |name: &str, entries: Vec<String>| {
        add(format!("#define {name} \\"));
        entries.iter().for_each(|entry| add(format!("\t{entry} \\")));
        add(String::new());
    };
    let with_roles = rows.iter().filter(|row| row.list("traced").any(|role| role != "Named"));
    let traced = with_roles.map(|row| {
        let roles: Vec<_> = row.list("traced").map(|role| role.to_uppercase()).collect();
        format!("[{} /* {} */] = ROLE_{},", row.number, row.name, roles.join(" | ROLE_"))
    });
    define("TRACED_CALLS", traced.collect());
    let commits = rows.iter().filter(|row| row.facts.contains_key("commits"));
    let watched = commits.map(|row| format!("case {}: /* {} */", row.number, row.name));
    define("CASES_OF_WATCHED_CALLS", watched.collect());
    let known = |row: &&CallRow| row.is_traced() || row.facts.contains_key("commits");
    let natives = |key: &str, is_in: &dyn Fn(&CallRow) -> bool| {
        let rows = rows.iter().filter(|row| known(row) && is_in(row));
        let mut entries: Vec<_> =
            rows.flat_map(|row| row.numbers(key).map(move |number| (number, row))).collect();
        entries.sort_by_key(|(number, _)| *number);
        let entry = |(number, row): (u32, &CallRow)| {
            format!("[{number} /* {} */] = NATIVE({}),", row.name, row.number)
        };
        entries.into_iter().map(entry).collect::<Vec<_>>()
    };
    define("NATIVES_OF_ARM64", natives("arm64", &|_| true));
    for (key, word) in [("i386", "I386"), ("arm", "ARM")] {
        define(&format!("NATIVES_OF_{word}"), natives(key, &|row| row.has_role()));
        define(&format!("OTHER_NATIVES_OF_{word}"), natives(key, &|row| !row.has_role()));
    }
    let x32 = rows.iter().flat_map(|row| row.numbers("x32").map(move |number| (number, row)));
    let x32 = x32.map(|(number, row)| format!("case {number}: return {};", row.number));
    define("CASES_OF_X32", x32.collect());
    text + "#endif\n"
}
