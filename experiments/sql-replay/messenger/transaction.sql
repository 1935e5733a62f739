-- Messages come in, are marked as seen, and are looked at.
--! transaction receive 45
--! let in = skewed(1,60)
BEGIN EXCLUSIVE;
--! repeat int(1,3)
INSERT OR REPLACE INTO message VALUES (:in, :text(12), :key(message), 0, :text(20,200));
--! end
UPDATE conversation SET unread = unread + 1, last = :text(20,60) WHERE id = :in;
COMMIT;
--! transaction seen 48
UPDATE message SET state = :int(0,2) WHERE rowid = :recent(message);
--! transaction look 46
SELECT author, body, state FROM message
    WHERE conversation = :skewed(1,60) ORDER BY number DESC LIMIT 20;
--! transaction forget 1
DELETE FROM message WHERE rowid = :known(message);
