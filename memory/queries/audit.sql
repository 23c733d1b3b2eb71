-- The audit log: written by the process that takes turns and by commands beside it, read by `claudius audit`.

-- name: audit_note
INSERT INTO audit (at, who, act, target, origin) VALUES (:at, :who, :act, :target, :origin);

-- name: audit_shown
-- scans: a command lists what was done since a time
SELECT id, at, who, act, target, origin FROM audit WHERE at >= :since ORDER BY id DESC LIMIT :most;

-- name: audit_newest
SELECT coalesce(max(id), 0) AS id FROM audit;

-- name: audit_after
SELECT act, target FROM audit WHERE id > :seen;

-- name: audited
SELECT digests, seen FROM audited WHERE id = 1;

-- name: audited_now
INSERT INTO audited (id, digests, seen) VALUES (1, :digests, :seen)
ON CONFLICT (id) DO UPDATE SET digests = :digests, seen = :seen;

-- name: audit_erase_who
-- scans: an erasure reads everything once
UPDATE audit SET who = :alias WHERE who = :person;

-- name: audit_erase_target
-- scans: an erasure reads everything once
UPDATE audit SET target = :alias WHERE target = :person;

-- name: audit_lent
-- scans: an erasure reads everything once
SELECT 1 AS is_lent FROM audit WHERE act = 'bridge' AND target IN (SELECT value FROM json_each(:turns)) LIMIT 1;

-- name: audit_lent_in
-- scans: an erasure reads everything once
-- Whether a session was shown a conversation of theirs, or one in which they spoke, whatever became of the turn.
SELECT 1 AS is_lent FROM audit WHERE act = 'bridge' AND (origin IN (SELECT value FROM json_each(:places))
  OR origin IN (SELECT conversation FROM inbox WHERE person IN (SELECT value FROM json_each(:ids)))
  OR origin IN (SELECT conversation FROM conversation_person WHERE person IN (SELECT value FROM json_each(:ids)))) LIMIT 1;
