-- 2000 mails in 20 folders, a few of them with their text.
BEGIN;
--! repeat 20
INSERT INTO folder VALUES (:key(folder), :text(8), 0);
--! end
--! repeat 2000
INSERT INTO mail VALUES (:key(mail), :known(folder), 0, :text(20,60));
--! end
--! repeat 300
INSERT INTO body VALUES (:known(mail), :blob(500,3000)) ON CONFLICT DO NOTHING;
--! end
--! repeat 20
INSERT INTO queue VALUES (:key(queue), :text(20));
--! end
COMMIT;
