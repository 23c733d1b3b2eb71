-- A copy that is restored: what the database that it replaces has answered since, so that nothing is answered twice.

-- name: answered_here
-- scans: once per restore, no daemon runs
SELECT key FROM inbox
WHERE state = 'settled' OR state = 'dead' OR turn IN (SELECT turn FROM outbox WHERE state <> 'pending');

-- name: unanswered_here
-- scans: once per restore, no daemon runs
SELECT key FROM inbox WHERE state <> 'settled' AND state <> 'dead';

-- name: answered_elsewhere
INSERT INTO inbox (key, conversation, position, kind, owes, person, payload, heard_at, state, turn, reason, settled_at)
VALUES (:key, '', '', 'erased', 0, '', '{"text":""}', :now, 'settled', '', :reason, :now)
ON CONFLICT (key) DO UPDATE SET state = 'settled', reason = :reason, settled_at = :now, inputs = '{}', not_before = NULL,
    payload = CASE WHEN json_valid(inbox.payload)
        THEN json_set(inbox.payload, '$.text', '', '$.extra', json('{}')) ELSE '{"text":""}' END
WHERE inbox.state <> 'settled' AND inbox.state <> 'dead';

-- name: said_elsewhere
UPDATE outbox SET state = 'sent', reason = :reason, sent_at = :now
WHERE turn = (SELECT turn FROM inbox WHERE key = :key) AND (state = 'pending' OR state = 'taken' OR state = 'unknown_after_send');
