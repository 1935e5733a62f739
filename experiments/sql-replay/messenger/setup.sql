-- 3000 messages of 60 conversations.
BEGIN;
--! repeat 60
INSERT INTO conversation VALUES (:key(conversation), :text(10,30), 0, :text(20,60));
--! end
--! repeat 3000
INSERT INTO message
    VALUES (:known(conversation), :text(12), :key(message), :int(0,2), :text(20,200));
--! end
COMMIT;
