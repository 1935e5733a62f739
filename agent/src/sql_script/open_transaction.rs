//! Whether a transaction is open after some statements, as their texts say
//! (sqlite.org/lang_transaction.html, lang_savepoint.html).

use super::statement::TransactionRole;

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
