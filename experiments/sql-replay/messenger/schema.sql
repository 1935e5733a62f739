-- Messenger-like: messages arrive in short transactions, and small updates mark them. KakaoTalk's
-- trace is not public. Fitted to real SQL that is, of the Facebook app (DICL/mobile-traces), which
-- was counted and replayed: of its statements but BEGIN and COMMIT, 19.6 % SELECT, 39.6 % INSERT OR
-- REPLACE, 40.4 % UPDATE, 0.3 % DELETE; pages that a writing transaction appends to a WAL of 4 KiB
-- pages: mean 3.94, median 4, 95th percentile 8.
-- agent/src/workload/sql/app_model_test.rs measures both here.
CREATE TABLE conversation (id INTEGER PRIMARY KEY, title TEXT, unread INTEGER, last TEXT);
CREATE TABLE message (
    conversation INTEGER, author TEXT, number INTEGER, state INTEGER, body TEXT,
    PRIMARY KEY (conversation, author, number)
);
CREATE INDEX message_state ON message (state, number);
