//! The apps that are made, beside the published figures that their files name.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::folder::tests::sql_settings;
use super::stream::{Course, KeyCounts, SqlStream};
use super::{SqlScripts, folder};
use crate::sql_script::statement::SqlStep;
use crate::sqlite::pragmas::JournalMode;
use crate::workload::kind::Workload;
use crate::workload::threads::noted_phases::NotedPhases;

/// The folder of an app, in whichever experiment it is.
fn app(name: &str) -> PathBuf {
    let experiments = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../experiments");
    let folders = std::fs::read_dir(experiments).unwrap();
    let apps = folders.map(|folder| folder.unwrap().path().join(name));
    apps.into_iter().find(|app| app.join("transaction.sql").is_file()).unwrap()
}

/// Return the mix of 20,000 statements: per cent of each first word, but for those of transactions;
/// and the think times in us.
fn mix(name: &str) -> (BTreeMap<String, f64>, Vec<u64>) {
    let folder = folder::read(&app(name)).unwrap();
    let script = &folder.transactions[0].script;
    // As after the set-up, or nothing is known yet.
    let mut keys = KeyCounts::new(folder.keys.clone());
    for file in &folder.preparation {
        let mut set_up = SqlStream::new(file.script.clone(), Course::Once, 1, 1, keys);
        while set_up.next().unwrap().is_some() {}
        keys = set_up.keys().clone();
    }
    let keys = keys.share(0, 1);
    let mut stream = SqlStream::new(script.clone(), Course::RoundAndRound, 1, 0, keys);
    let (mut counts, mut waits) = (BTreeMap::<String, f64>::new(), Vec::new());
    for _ in 0..20_000 {
        let drawn = stream.next().unwrap().unwrap();
        let SqlStep::Statement(statement) = &script.steps[drawn.step] else { panic!() };
        let word = statement.sql().split_whitespace().next().unwrap().to_owned();
        if word != "BEGIN" && word != "COMMIT" {
            *counts.entry(word).or_default() += 1.0;
            waits.push(drawn.wait_us);
        }
    }
    let all: f64 = counts.values().sum();
    counts.values_mut().for_each(|count| *count *= 100.0 / all);
    (counts, waits)
}

/// Pages that each writing transaction appends to a WAL of 4 KiB pages: mean, median and 95th
/// percentile.
fn pages(name: &str) -> [f64; 3] {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = sql_settings(app(name));
    (settings.transactions, settings.warmup_transactions) = (2000, 0);
    settings.sql.options.journal_mode = JournalMode::Wal;
    settings.sql.options.wal_autocheckpoint_pages = 0;
    let plan = Some(settings.plan());
    let mut app = SqlScripts::prepare(directory.path(), &settings.sql, plan, 1).unwrap();
    app.run(&mut NotedPhases::default()).unwrap();
    let closed = Box::new(app).close().unwrap();
    assert_eq!(closed.incomplete_reasons, Vec::<String>::new(), "{name}");
    let (mut before, mut found) = (0, Vec::new());
    for row in closed.transactions.iter().filter(|row| row.kind != "checkpoint") {
        if row.kind == "write" && row.wal_frames > before {
            found.push(row.wal_frames - before);
        }
        before = row.wal_frames;
    }
    found.sort_unstable();
    let at = |share: usize| found[found.len() * share / 100] as f64;
    [found.iter().sum::<i64>() as f64 / found.len() as f64, at(50), at(95)]
}

#[track_caller]
fn check_mix(name: &str, published: &[(&str, f64)]) {
    let (found, _) = mix(name);
    for (word, percent) in published {
        let ours = found.get(*word).copied().unwrap_or(0.0);
        assert!((ours - percent).abs() < 2.0, "{name} {word}: {percent} published, {found:?}");
    }
}

#[track_caller]
fn check_pages(name: &str, published: [f64; 3]) {
    let found = pages(name);
    let is_near = |(ours, theirs): (&f64, &f64)| (ours - theirs).abs() <= 0.15 * theirs + 0.5;
    assert!(
        found.iter().zip(&published).all(is_near),
        "{name}: {published:?} published, {found:?}"
    );
}

#[test]
fn the_messenger_writes_as_facebook_does() {
    let mix = [("SELECT", 19.6), ("INSERT", 39.6), ("UPDATE", 40.4), ("DELETE", 0.3)];
    check_mix("messenger", &mix);
    check_pages("messenger", [3.94, 4.0, 8.0]);
}

#[test]
fn the_mail_app_synchronises_as_twitter_does() {
    check_mix("mail", &[("SELECT", 39.2), ("INSERT", 36.2), ("UPDATE", 17.9), ("DELETE", 6.7)]);
    check_pages("mail", [4.67, 3.0, 13.0]);
}

#[test]
fn the_key_value_store_is_asked_as_phones_ask() {
    let mix = [("SELECT", 74.3), ("INSERT", 20.9), ("DELETE", 2.6), ("UPDATE", 2.2)];
    check_mix("key-value", &mix);
    let (_, waits) = self::mix("key-value");
    let near = waits.iter().filter(|wait| **wait == 10_000).count() as f64 / waits.len() as f64;
    assert!((0.15..0.2).contains(&near), "{near}");
    let bursts: Vec<&[u64]> = waits.split(|wait| *wait > 1_000_000).collect();
    let long: Vec<f64> = bursts.iter().map(|it| it.iter().sum::<u64>() as f64 / 1e6).collect();
    let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
    assert!((1.0..2.0).contains(&mean(&long)), "a burst takes {} s", mean(&long));
    let all_s = waits.iter().sum::<u64>() as f64 / 1e6;
    let rate = waits.len() as f64 / all_s;
    assert!((1.5..2.5).contains(&rate), "{rate} statements/s");
}

#[test]
fn androbench_commits_every_row() {
    check_mix("androbench", &[("INSERT", 33.3), ("UPDATE", 33.3), ("DELETE", 33.3)]);
    let [mean, median, _] = pages("androbench");
    assert!((1.0..2.0).contains(&mean) && median == 1.0, "{mean} {median}");
}
