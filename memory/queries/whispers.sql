-- `store.whispers`: whispers and the daimons that they come from. None of these queries runs while no daimon is on.

-- name: whispers_active
-- scans: the active whispers, at most one per daimon and audience
SELECT id, daimon, text, influence, sources, expires_at FROM whisper WHERE state = 'active' ORDER BY daimon, sources;

-- name: daimon_modes
-- scans: one row per daimon
SELECT daimon, mode FROM daimon WHERE mode IS NOT NULL;

-- name: daimon_modes_here
SELECT daimon, mode FROM daimon_mode WHERE conversation = :conversation;

-- name: whisper_replaced
UPDATE whisper SET state = 'replaced' WHERE daimon = :daimon AND sources = :sources AND state = 'active';

-- name: whisper_new
INSERT INTO whisper (daimon, text, influence, transport, sources, conversation, at, expires_at)
VALUES (:daimon, :text, :influence, :transport, :sources, :conversation, :at, :expires_at) RETURNING id;

-- name: whispers_expire
-- scans: the active whispers, at most one per daimon and audience
UPDATE whisper SET state = 'expired' WHERE state = 'active' AND expires_at <= :now;

-- name: whispers_last
SELECT text FROM whisper WHERE daimon = :daimon ORDER BY at DESC LIMIT :most;

-- name: whispers_since
SELECT count(*) AS whispers FROM whisper WHERE daimon = :daimon AND at >= :since;

-- name: whispers_active_of
SELECT sources FROM whisper WHERE daimon = :daimon AND state = 'active' AND expires_at > :now;

-- name: daimon
SELECT asked_at, failures, rests_until, reason, mode FROM daimon WHERE daimon = :daimon;

-- name: daimon_asked
INSERT INTO daimon (daimon, asked_at) VALUES (:daimon, :now)
ON CONFLICT (daimon) DO UPDATE SET asked_at = excluded.asked_at;

-- name: daimon_fared
INSERT INTO daimon (daimon, failures, rests_until, reason) VALUES (:daimon, :failures, :rests_until, :reason)
ON CONFLICT (daimon) DO UPDATE SET failures = excluded.failures, rests_until = excluded.rests_until, reason = excluded.reason;

-- name: daimon_moded
INSERT INTO daimon (daimon, mode) VALUES (:daimon, :mode)
ON CONFLICT (daimon) DO UPDATE SET mode = excluded.mode;

-- name: daimon_moded_here
INSERT INTO daimon_mode (conversation, daimon, mode) VALUES (:conversation, :daimon, :mode)
ON CONFLICT (conversation, daimon) DO UPDATE SET mode = excluded.mode;

-- name: latest_external
-- The newest turns that answered somebody, latest first.
SELECT t.conversation, t.number, t.turn, t.at, t.audience, t.person FROM turn t
WHERE t.at > :since AND t.person <> '' ORDER BY t.at DESC LIMIT :most;

-- name: monologue_of
SELECT content FROM entry WHERE conversation = :conversation AND number = :number AND entry_type = 'internalMonologue'
ORDER BY n LIMIT 1;

-- name: turns_ever
-- scans: one row per conversation and speaker
SELECT coalesce(sum(turns), 0) AS turns FROM conversation_person;
