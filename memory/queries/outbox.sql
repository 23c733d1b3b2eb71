-- `store.outbox`: the life of an outbox row.

-- name: say
INSERT INTO outbox (key, turn, part, parts, conversation, kind, body, verb, apology, answers, receipts, card, state, boot, attempts, at)
VALUES (:key, :turn, :part, :parts, :conversation, :kind, :body, :verb, :apology, :answers, :receipts, :card, :state, :boot, :attempts, :at)
ON CONFLICT (key) DO UPDATE SET parts = excluded.parts, kind = excluded.kind, body = excluded.body, verb = excluded.verb,
    apology = excluded.apology, answers = excluded.answers, receipts = excluded.receipts, card = excluded.card;

-- name: stream_open
INSERT INTO outbox (key, turn, part, parts, conversation, kind, body, verb, apology, answers, state, boot, attempts, at)
VALUES (:key, :turn, :part, :parts, :conversation, :kind, '', :verb, :apology, :answers, 'taken', :boot, 1, :at)
ON CONFLICT (key) DO NOTHING;

-- name: deliveries
-- A row without words is a stream that was opened for a turn that is not committed yet.
SELECT key, turn, part, parts, conversation, kind, body, verb, apology, answers, receipts, card, state, attempts, not_before, at, reason,
  (SELECT person FROM inbox WHERE inbox.turn = outbox.turn ORDER BY seq DESC LIMIT 1) AS person
FROM outbox
WHERE conversation = :conversation AND (state = 'pending' OR state = 'taken' OR state = 'unknown_after_send') AND body <> ''
ORDER BY seq;

-- name: answered
SELECT key, turn, part, parts, conversation, kind, body, verb, apology, answers, receipts, card, state, attempts, not_before, at, reason,
  (SELECT person FROM inbox WHERE inbox.turn = outbox.turn ORDER BY seq DESC LIMIT 1) AS person
FROM outbox WHERE turn = (SELECT turn FROM inbox WHERE key = :key) AND state = 'sent' ORDER BY part;

-- name: part_state
SELECT turn, part, state, boot, conversation FROM outbox WHERE key = :key;

-- name: attempt
UPDATE outbox SET state = 'taken', boot = :boot, attempts = attempts + 1, not_before = NULL
WHERE key = :key AND state IN ('pending', 'unknown_after_send');

-- name: settle_part
UPDATE outbox SET state = 'sent', receipt = :receipt, sent_at = :now, not_before = NULL, reason = NULL
WHERE key = :key AND (state = 'pending' OR state = 'taken' OR state = 'unknown_after_send');

-- name: take_next_part
UPDATE outbox SET state = 'taken', boot = :boot, attempts = attempts + 1
WHERE state = 'pending' AND not_before IS NULL AND (turn, part) = (
    SELECT turn, part + 1 FROM outbox WHERE key = :key AND state = 'sent' AND sent_at = :now);

-- name: settle_turn
-- Once every part of the turn is sent.
UPDATE inbox SET state = 'settled', settled_at = :now, payload = CASE WHEN json_valid(payload)
        THEN json_set(payload, '$.text', '', '$.extra', json('{}')) ELSE '{"text":""}' END
WHERE turn = (SELECT turn FROM outbox WHERE key = :key) AND state = 'committed'
  AND NOT EXISTS (SELECT 1 FROM outbox WHERE turn = inbox.turn AND state <> 'sent');

-- name: is_owed
SELECT owes FROM inbox WHERE key = :key;

-- name: sign_dropped
DELETE FROM outbox WHERE key = :key;

-- name: delay
UPDATE outbox SET state = :state, not_before = :not_before, reason = :reason
WHERE key = :key AND (state = 'pending' OR state = 'taken' OR state = 'unknown_after_send');

-- name: doubt
UPDATE outbox SET state = 'unknown_after_send' WHERE seq IN (SELECT seq FROM outbox WHERE conversation = :conversation
    AND (state = 'pending' OR state = 'taken' OR state = 'unknown_after_send')) AND state = 'taken' AND body <> '';

-- name: dead_parts
UPDATE outbox SET state = 'dead', reason = :reason, not_before = NULL
WHERE turn = :turn AND part >= :part AND (state = 'pending' OR state = 'taken' OR state = 'unknown_after_send');

-- name: dead_turn
UPDATE inbox SET state = 'dead', reason = :reason WHERE turn = :turn AND state = 'committed';

-- name: said_of_turn
SELECT body FROM outbox WHERE turn = :turn AND state = 'sent' ORDER BY part;

-- name: unsay
UPDATE entry SET unsaid = CASE :said WHEN '' THEN 1 ELSE 0 END, content = CASE :said WHEN '' THEN content ELSE :said END
WHERE entry_type IN ('externalDialog', 'daimonSpeech')
  AND (conversation, number) IN (SELECT conversation, number FROM turn WHERE turn = :turn);

-- name: say_instead
UPDATE outbox SET kind = 'reply', body = :line, verb = 'acknowledged', state = 'pending', not_before = NULL, reason = NULL
WHERE key = :key AND kind = 'reaction' AND (state = 'pending' OR state = 'taken' OR state = 'unknown_after_send')
  AND EXISTS (SELECT 1 FROM inbox WHERE inbox.turn = outbox.turn AND inbox.owes = 1) RETURNING turn;

-- name: acknowledge
UPDATE entry SET verb = 'acknowledged' WHERE entry_type = 'externalDialog'
  AND (conversation, number) IN (SELECT conversation, number FROM turn WHERE turn = :turn);

-- name: posts_for
-- What was said in answer to this message alone.
SELECT conversation, receipt FROM outbox WHERE turn = (SELECT turn FROM inbox WHERE key = :key) AND state = 'sent'
  AND kind IN ('reply', 'apology') AND receipt IS NOT NULL AND json_array_length(answers) = 1 ORDER BY part DESC;
