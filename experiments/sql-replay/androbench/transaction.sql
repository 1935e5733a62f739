-- Inserts go to the end of the table, updates and deletes anywhere in it.
--! transaction insert 1
INSERT INTO record VALUES (:key(row), :text(100), :int(1400000000,1440000000));
--! transaction update 1
UPDATE record SET value = :text(100) WHERE id = :known(row);
--! transaction delete 1
DELETE FROM record WHERE id = :known(row);
