-- What is queued is synchronised: many small rows, on few pages.
--! transaction synchronise 55
BEGIN;
--! repeat int(6,17)
SELECT subject, flags FROM mail WHERE id = :recent(mail);
--! end
--! repeat int(4,16)
INSERT INTO queue VALUES (:key(queue), :text(20));
--! end
--! repeat int(4,13)
UPDATE folder SET unread = unread + 1 WHERE id = :skewed(1,20);
--! end
--! repeat int(0,4)
DELETE FROM queue WHERE id = :recent(queue);
--! end
COMMIT;
-- New mail, some of it with its text.
--! transaction fetch 45
BEGIN;
--! repeat int(6,17)
SELECT count(*) FROM queue WHERE id > :recent(queue);
--! end
--! repeat int(4,16)
INSERT INTO mail VALUES (:key(mail), :skewed(1,20), 0, :text(20,60));
--! end
--! repeat skewed(0,9)
INSERT INTO body VALUES (:key(mail), :blob(500,4000));
--! end
--! repeat skewed(0,12)
UPDATE mail SET flags = flags + 1 WHERE id = :known(mail);
--! end
--! repeat int(0,4)
DELETE FROM queue WHERE id = :recent(queue);
--! end
COMMIT;
