-- The tables and indexes of your app. Copy this folder, and change what is here.
CREATE TABLE list (id INTEGER PRIMARY KEY, name TEXT NOT NULL, open_tasks INTEGER NOT NULL);
CREATE TABLE task (
    id INTEGER PRIMARY KEY,
    list INTEGER NOT NULL REFERENCES list (id),
    title TEXT NOT NULL,
    note TEXT,
    due INTEGER,
    done INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX task_of_list ON task (list, done, due);
