//! The sums of a trace as they are printed, where the tables lack some rows or have
//! none.

use std::fmt::Write as _;

use super::summary::printable;
use crate::tracer::assembly::Totals;

/// Lines of files that are printed.
const LINES_SHOWN: usize = 40;

/// Bytes by operation and type of all bios, and whose those were that have no rows; none where
/// every bio has.
pub fn text(totals: &Totals) -> Option<String> {
    let mut text = String::new();
    let Totals { exact, bios_without_rows, sums, without_rows } = totals;
    if *bios_without_rows == 0 {
        return None;
    }
    let mut put = |line: String| writeln!(text, "{}", line.trim_end()).expect("to memory");
    put(format!(
        "{bios_without_rows} bios have no rows in requests and page_runs: their bytes were added \
         up in the kernel"
    ));
    put("without rows: operation type         kind         runs        bytes  file".into());
    for line in without_rows.iter().take(LINES_SHOWN) {
        put(format!(
            "              {:9} {:12} {:10} {:6} {:12}  {}",
            line.operation,
            line.block_type,
            line.file_kind,
            line.runs,
            line.bytes,
            printable(&line.file)
        ));
    }
    if without_rows.len() > LINES_SHOWN {
        put(format!("              ... {} more lines", without_rows.len() - LINES_SHOWN));
    }
    let known = if *exact { "exact" } else { "at least" };
    put(format!("totals, {known}: device   operation type                bytes  without rows"));
    for sum in sums {
        put(format!(
            "               {:9} {:9} {:12} {:12}  {:12}",
            sum.device, sum.operation, sum.block_type, sum.bytes, sum.bytes_without_rows
        ));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracer::assembly::Total;

    #[test]
    fn sums_are_printed_where_rows_are_missing_alone() {
        let total = Total {
            device: "sda".into(),
            operation: "write",
            block_type: "data",
            bytes: 8192,
            bytes_without_rows: 4096,
        };
        let mut totals = Totals { exact: true, sums: vec![total], ..Totals::default() };
        assert_eq!(text(&totals), None);
        totals.bios_without_rows = 1;
        let found = text(&totals).unwrap();
        assert!(
            found.contains("1 bios have no rows") && found.contains("totals, exact"),
            "{found}"
        );
        assert!(found.contains("8192") && found.contains("4096"), "{found}");
        totals.exact = false;
        assert!(text(&totals).unwrap().contains("totals, at least"));
    }
}
