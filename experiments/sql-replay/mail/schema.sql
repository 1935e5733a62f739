-- Mail-like: a synchronisation looks at what is there and changes many rows in one transaction.
-- Gmail's trace is not public. Fitted to real SQL that is, of the Twitter app (DICL/mobile-traces),
-- which synchronises a time line so; it was counted and replayed: of its statements but BEGIN and
-- COMMIT, 39.2 % SELECT, 36.2 % INSERT, 17.9 % UPDATE, 6.7 % DELETE, and about 19 that write in a
-- writing transaction; pages that such a transaction appends to a WAL of 4 KiB pages: mean 4.67,
-- median 3, 95th percentile 13.
-- agent/src/workload/sql/app_model_test.rs measures both here.
CREATE TABLE folder (id INTEGER PRIMARY KEY, name TEXT, unread INTEGER);
CREATE TABLE mail (id INTEGER PRIMARY KEY, folder INTEGER, flags INTEGER, subject TEXT);
CREATE TABLE body (mail INTEGER PRIMARY KEY, content BLOB);
CREATE TABLE queue (id INTEGER PRIMARY KEY, what TEXT);
