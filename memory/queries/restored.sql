-- A copy that is restored: what the database that it replaces has answered since, so that nothing is answered twice,
-- and what it has accepted and not answered, so that nothing is lost.

-- name: answered_here
-- scans: once per restore, no daemon runs
SELECT key FROM inbox WHERE state = 'settled' OR state = 'dead';

-- name: unanswered_here
-- scans: once per restore, no daemon runs
SELECT key, payload, heard_at, owes, turn, stopped, CASE state WHEN 'committed' THEN 'committed' ELSE 'pending' END AS state
FROM inbox WHERE state <> 'settled' AND state <> 'dead' ORDER BY seq;

-- name: said_of_unanswered_here
-- scans: once per restore, no daemon runs
SELECT key, turn, part, parts, conversation, kind, body, verb, apology, answers, receipts, attempts, receipt, stream_ref, reason, at, sent_at,
    CASE state WHEN 'taken' THEN 'unknown_after_send' ELSE state END AS state
FROM outbox WHERE turn IN (SELECT turn FROM inbox WHERE state <> 'settled' AND state <> 'dead') ORDER BY seq;

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

-- name: unsaid_here
DELETE FROM outbox WHERE turn = :turn OR turn = (SELECT turn FROM inbox WHERE key = :key);

-- name: unheard_here
DELETE FROM inbox WHERE key = :key AND state <> 'settled' AND state <> 'dead';

-- name: waits_as_elsewhere
UPDATE inbox SET owes = :owes, turn = :turn, stopped = :stopped, state = :state
WHERE key = :key AND state <> 'settled' AND state <> 'dead';

-- name: said_as_elsewhere
INSERT INTO outbox (key, turn, part, parts, conversation, kind, body, verb, apology, answers, receipts, state, attempts, receipt, stream_ref,
    reason, at, sent_at)
VALUES (:key, :turn, :part, :parts, :conversation, :kind, :body, :verb, :apology, :answers, :receipts, :state, :attempts, :receipt, :stream_ref,
    :reason, :at, :sent_at)
ON CONFLICT (key) DO NOTHING;

-- name: calls_of_unanswered_here
-- scans: once per restore, no daemon runs
SELECT id, turn, conversation, audience, person, is_owner, tool, class, third, pin, args, args_sha256, state, reason, approvers,
    allowed_by, grant_id, boot, token, attempts, asked_at, until, started_at, ended_at, result, told_turn
FROM tool_call WHERE state <> 'waiting' AND turn IN (SELECT turn FROM inbox WHERE state <> 'settled' AND state <> 'dead');

-- name: calls_restored
-- What the copy asks was asked long ago, and what it was allowed may have been done since.
UPDATE tool_call SET state = CASE state WHEN 'waiting' THEN 'lapsed' ELSE 'withdrawn' END, ended_at = :now
WHERE state IN ('waiting', 'approved', 'started') AND state <> 'started';

-- name: call_as_elsewhere
INSERT INTO tool_call (id, turn, conversation, audience, person, is_owner, tool, class, third, pin, args, args_sha256, state, reason, approvers,
    allowed_by, grant_id, boot, token, attempts, asked_at, until, started_at, ended_at, result, told_turn)
VALUES (:id, :turn, :conversation, :audience, :person, :is_owner, :tool, :class, :third, :pin, :args, :args_sha256, :state, :reason,
    :approvers, :allowed_by, :grant_id, :boot, :token, :attempts, :asked_at, :until, :started_at, :ended_at,
    :result, :told_turn)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, reason = excluded.reason, boot = excluded.boot, token = excluded.token,
    attempts = excluded.attempts, started_at = excluded.started_at, ended_at = excluded.ended_at, result = excluded.result;
