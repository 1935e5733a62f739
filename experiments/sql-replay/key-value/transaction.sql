-- One statement is one transaction.
--! transaction get 739
--! wait_us one(10000, 5000, 5000, 5000, 5000, 5000)
SELECT value FROM pair WHERE key = 'key' || :skewed(1,500);
--! transaction put 209
--! wait_us one(10000, 5000, 5000, 5000, 5000, 5000)
INSERT OR REPLACE INTO pair VALUES ('key' || :skewed(1,500), :blob(20,400));
--! transaction remove 26
--! wait_us one(10000, 5000, 5000, 5000, 5000, 5000)
DELETE FROM pair WHERE key = 'key' || :int(1,500);
--! transaction touch 22
--! wait_us one(10000, 5000, 5000, 5000, 5000, 5000)
UPDATE pair SET value = :blob(20,400) WHERE key = 'key' || :skewed(1,500);
-- Between two bursts nothing happens for minutes.
--! transaction pause 4
--! wait_us int(60000000,180000000)
SELECT count(*) FROM pair;
