-- What is there before the first transaction: 20 lists, 5000 tasks.
BEGIN;
--! repeat 20
INSERT INTO list VALUES (:key(list), :text(8,20), 250);
--! end
--! repeat 5000
INSERT INTO task VALUES
    (:key(task), :known(list), :text(10,60), :text(0,300), :int(1700000000,1800000000), :int(0,1));
--! end
COMMIT;
