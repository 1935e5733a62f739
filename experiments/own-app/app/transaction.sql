-- What the user does, each as often as its weight says: of 100 actions, 30 add a task.
--! transaction add 30
--! let of = skewed(1,20)
BEGIN;
INSERT INTO task VALUES
    (:key(task), :of, :text(10,60), :text(0,300), :int(1700000000,1800000000), 0);
UPDATE list SET open_tasks = open_tasks + 1 WHERE id = :of;
COMMIT;

--! transaction finish 20
--! let task = recent(task)
BEGIN;
UPDATE list SET open_tasks = open_tasks - 1
    WHERE id = (SELECT list FROM task WHERE id = :task AND done = 0);
UPDATE task SET done = 1 WHERE id = :task;
COMMIT;

--! transaction edit 10
UPDATE task SET title = :text(10,60), note = :text(0,300) WHERE id = :recent(task);

--! transaction look 40
SELECT id, title, due FROM task WHERE list = :skewed(1,20) AND done = 0 ORDER BY due LIMIT 50;
