-- 3000 rows before the first transaction.
BEGIN;
--! repeat 3000
INSERT INTO record VALUES (:key(row), :text(100), :int(1400000000,1440000000));
--! end
COMMIT;
