-- AndroBench-like: a benchmark that inserts, updates and deletes rows of one table, a row and a
-- commit each. No trace of it is public. Fitted to what is stated of the trace that was replayed
-- ("Analysis of Flash Memory File Systems through SQLite", in Korean, 2015, sections 3.2 and 3.3):
-- small updates are frequent, sequential and random writes are mixed. Assumed, as nothing states
-- it: the three operations are equally frequent, a row has 100 characters as Mobibench's has.
CREATE TABLE record (id INTEGER PRIMARY KEY, value TEXT NOT NULL, created INTEGER NOT NULL);
