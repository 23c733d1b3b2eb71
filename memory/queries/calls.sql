-- `store.calls`: what the soul does with tools, each use with its state, and the consents that are remembered.

-- name: call_found
SELECT id, turn, conversation, audience, person, is_owner, tool, class, third, pin, args, args_sha256, state, reason, approvers, allowed_by, grant_id,
    attempts, asked_at, until, started_at, ended_at, result, told_turn FROM tool_call WHERE id = :id;

-- name: call_asked_in
-- Whose card is this post? A turn asks one question at most.
SELECT c.id, c.turn, c.conversation, c.audience, c.person, c.is_owner, c.tool, c.class, c.third, c.pin, c.args, c.args_sha256, c.state, c.reason,
    c.approvers, c.allowed_by, c.grant_id, c.attempts, c.asked_at, c.until, c.started_at, c.ended_at, c.result, c.told_turn
FROM outbox o JOIN tool_call c ON c.turn = o.turn AND c.until IS NOT NULL
WHERE o.receipt = :receipt AND o.conversation >= :place AND o.conversation < :until AND o.card <> '';

-- name: calls_of_turn
SELECT id, turn, conversation, audience, person, is_owner, tool, class, third, pin, args, args_sha256, state, reason, approvers, allowed_by, grant_id,
    attempts, asked_at, until, started_at, ended_at, result, told_turn FROM tool_call WHERE turn = :turn ORDER BY id;

-- name: calls_shown
-- scans: the owner looks at the last ones
SELECT id, turn, conversation, audience, person, is_owner, tool, class, third, pin, args, args_sha256, state, reason, approvers, allowed_by, grant_id,
    attempts, asked_at, until, started_at, ended_at, result, told_turn FROM tool_call ORDER BY asked_at DESC LIMIT :most;

-- name: grants_shown
-- scans: the owner looks at them
SELECT id, tool, pin, scope, person, conversation, granted_by, granted_at, expires_at FROM tool_grant
WHERE revoked_at IS NULL AND expires_at > :now ORDER BY id;

-- name: calls_open
-- What waits for consent, or is under way, in one conversation.
SELECT id, turn, conversation, audience, person, is_owner, tool, class, third, pin, args, args_sha256, state, reason, approvers, allowed_by, grant_id,
    attempts, asked_at, until, started_at, ended_at, result, told_turn, boot, token FROM tool_call
WHERE conversation = :conversation AND state IN ('waiting', 'approved', 'started') ORDER BY conversation;

-- name: calls_waiting
-- scans: what waits for consent, at most three in a conversation
SELECT id, turn, conversation, audience, person, is_owner, tool, class, third, pin, args, args_sha256, state, reason, approvers, allowed_by, grant_id,
    attempts, asked_at, until, started_at, ended_at, result, told_turn FROM tool_call
WHERE state = 'waiting' AND state IN ('waiting', 'approved', 'started') ORDER BY asked_at;

-- name: calls_lapse_next
SELECT min(until) AS until FROM tool_call WHERE state = 'waiting' AND state IN ('waiting', 'approved', 'started');

-- name: cards_decided
-- Posts whose question is decided, and which still show it as open.
SELECT o.key, o.conversation, o.receipt, o.card, c.state, c.allowed_by FROM outbox o
JOIN tool_call c ON c.turn = o.turn AND c.until IS NOT NULL AND c.state <> 'waiting'
WHERE o.card <> '' AND o.state = 'sent';

-- name: card_settled
UPDATE outbox SET card = '' WHERE key = :key;

-- name: call_asked
INSERT INTO tool_call (id, turn, conversation, audience, person, is_owner, tool, class, third, pin, args, args_sha256, state, reason, approvers,
    asked_at, until)
VALUES (:id, :turn, :conversation, :audience, :person, :is_owner, :tool, :class, :third, :pin, :args, :args_sha256, 'waiting', :reason, :approvers,
    :now, :until)
ON CONFLICT (id) DO NOTHING;

-- name: call_started
-- Before the first byte leaves. One that is started already, or has ended, stays as it is.
INSERT INTO tool_call (id, turn, conversation, audience, person, is_owner, tool, class, third, pin, args, args_sha256, state, reason, approvers,
    allowed_by, grant_id, boot, token, attempts, asked_at, started_at)
VALUES (:id, :turn, :conversation, :audience, :person, :is_owner, :tool, :class, :third, :pin, :args, :args_sha256, 'started', :reason, '[]',
    :allowed_by, :grant, :boot, :token, 1, :now, :now)
ON CONFLICT (id) DO UPDATE SET state = 'started', boot = excluded.boot, token = excluded.token,
    attempts = tool_call.attempts + 1, started_at = excluded.started_at
WHERE tool_call.state = 'approved' AND tool_call.args_sha256 = excluded.args_sha256;

-- name: call_ended
-- Only by the process that started it, under the lane's token that it had then.
UPDATE tool_call SET state = :state, reason = :reason, result = :result, ended_at = :now
WHERE id = :id AND state = 'started' AND boot = :boot AND token = :token AND attempts = :attempts;

-- name: call_again
-- Its server died, and recognises a call that is made again.
UPDATE tool_call SET attempts = attempts + 1, started_at = :now
WHERE id = :id AND state = 'started' AND boot = :boot AND token = :token AND attempts = :attempts AND attempts < :most;

-- name: call_left
-- One that another process, or an earlier token, left open.
UPDATE tool_call SET state = :state, reason = :reason, ended_at = :now WHERE id = :id AND state = 'started';

-- name: call_decided
UPDATE tool_call SET state = :state, allowed_by = :by, grant_id = :grant, ended_at = :ended_at
WHERE id = :id AND state = 'waiting' AND until > :now;

-- name: calls_lapsed
UPDATE tool_call SET state = 'lapsed', ended_at = :now
WHERE state = 'waiting' AND state IN ('waiting', 'approved', 'started') AND until <= :now
RETURNING id, turn, conversation, audience, person, is_owner, tool, class, third, pin, args, args_sha256, state, reason, approvers, allowed_by, grant_id,
    attempts, asked_at, until, started_at, ended_at, result, told_turn;

-- name: calls_withdrawn
-- What caused it was changed or taken back.
UPDATE tool_call SET state = 'withdrawn', ended_at = :now WHERE turn = :turn AND state = 'waiting';

-- name: calls_stopped
UPDATE tool_call SET state = 'withdrawn', ended_at = :now
WHERE conversation = :conversation AND state = 'waiting' AND state IN ('waiting', 'approved', 'started')
  AND (:by_owner = 1 OR person = :person OR person = (SELECT canonical FROM person_link WHERE person = :person)) RETURNING id;

-- name: call_told
UPDATE tool_call SET told_turn = :turn WHERE id = :id;

-- name: call_of_its_turn
-- Whether the turn that asked for a call is unfinished, and so will hear of its end.
SELECT 1 AS waits FROM inbox WHERE turn = :turn AND (state = 'pending' OR state = 'taken' OR state = 'thought') LIMIT 1;

-- name: calls_of_person
SELECT count(*) AS calls FROM tool_call WHERE person = :person AND asked_at > :since AND class <> 'look';

-- name: calls_expired
-- With the record of their turn; what was done, when, and who allowed it stays.
UPDATE tool_call SET args = '{}', result = '' WHERE turn = :turn;

-- name: grant_new
INSERT INTO tool_grant (tool, pin, scope, person, conversation, granted_by, granted_at, expires_at)
VALUES (:tool, :pin, :scope, :person, :conversation, :granted_by, :granted_at, :expires_at);

-- name: grants_in_force
-- scans: the consents that are remembered, a handful; asked only where a tool is to be used
SELECT id, tool, pin, scope, person, conversation, granted_by, granted_at, expires_at FROM tool_grant
WHERE revoked_at IS NULL AND expires_at > :now AND (conversation = '' OR conversation IN (:conversation, :channel))
  AND (person = '' OR person = :person);

-- name: grant_revoked
UPDATE tool_grant SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL;
