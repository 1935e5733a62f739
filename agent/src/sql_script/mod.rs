//! Scripts of SQL whose values are recorded or drawn: parses their text. docs/own-sql.md says what
//! they may hold.
//!
//! lexer; expression -> statement -> parse

pub mod expression;
pub mod lexer;
pub mod parse;
pub mod statement;
