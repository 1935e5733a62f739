-- 500 pairs.
BEGIN;
--! repeat 500
INSERT INTO pair VALUES ('key' || :key, :blob(20,400));
--! end
COMMIT;
