//! The hash by which two runs' operations can be told apart.

use sha2::{Digest, Sha256};

/// The hash of all threads' streams, in hexadecimal: of one, its own; of several, over their hashes
/// in order.
pub fn hash_of(threads: Vec<Sha256>) -> String {
    let mut digests = threads.into_iter().map(Sha256::finalize);
    let digest = match (digests.next(), digests.len()) {
        (Some(only), 0) => only,
        (first, _) => {
            first.into_iter().chain(digests).fold(Sha256::new(), Sha256::chain_update).finalize()
        }
    };
    format!("{digest:x}")
}
