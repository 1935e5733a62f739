-- Key-value-like: SQLite as a store of keys, as 24 of 179 apps of phones use it alone, and the
-- median app in 80 % of its work. Fitted to PocketData / TPC-MOBILE (Kennedy, Ajay, Challen,
-- Ziarek: Pocket Data: The Need for TPC-MOBILE, TPCTC 2015, and its talk; 11 phones, a month,
-- 45 million statements): 74 % SELECT, 21 % INSERT (OR REPLACE), 3 % DELETE, 2 % UPDATE; bursts of
-- 1 to 2 s with hundreds of statements, about 2 statements a second in the mean, 15 to 20 % of them
-- 10 ms after the one before (kept with think_time = "recorded").
-- agent/src/workload/sql/app_model_test.rs measures this.
CREATE TABLE pair (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
