-- `store.inbox`: the life of an inbox row, and what edits, deletions, stop requests and reactions make of it.

-- name: audience_heard
SELECT audience FROM conversation WHERE conversation >= :conversation AND conversation < :until AND audience <> 'self' LIMIT 1;

-- name: heard_before
SELECT seq, key, conversation, position, state, payload, turn, again, edited, person FROM inbox WHERE key = :key;

-- name: amend_waiting
UPDATE inbox SET payload = :payload, edited = :position, turn = :turn, again = :again, inputs = '{}', not_before = NULL,
    state = 'pending'
WHERE seq = :seq AND (state = 'pending' OR state = 'taken' OR state = 'thought');

-- name: showing
SELECT seq, payload FROM inbox
WHERE (state = 'pending' OR state = 'taken' OR state = 'thought') AND payload LIKE :of;

-- name: shows_now
UPDATE inbox SET payload = :payload WHERE seq = :seq AND (state = 'pending' OR state = 'taken' OR state = 'thought');

-- name: amended
UPDATE inbox SET edited = :position WHERE seq = :seq;

-- name: amend_settled
UPDATE inbox SET state = 'settled', settled_at = :now, reason = :reason,
    payload = CASE WHEN json_valid(payload)
        THEN json_set(payload, '$.text', '', '$.extra', json('{}')) ELSE '{"text":""}' END
WHERE key = :key AND (state = 'pending' OR state = 'taken' OR state = 'thought');

-- name: place_of_turn
SELECT turn, conversation, number, record, at FROM turn WHERE turn = :turn;

-- name: line_at
SELECT e.content FROM turn t JOIN entry e ON e.conversation = t.conversation AND e.number = t.number
WHERE t.turn = :turn AND e.position = :position AND e.entry_type = 'userMessage';

-- name: entry_amended
UPDATE entry SET content = :content, stems = '',
    metadata = json_set(CASE WHEN json_valid(metadata) THEN metadata ELSE '{}' END, :mark, json('true'))
WHERE conversation = :conversation AND number = :number AND position = :position AND entry_type = 'userMessage';

-- name: doubt_learned
UPDATE revision SET doubted_at = :now WHERE turn = :turn AND doubted_at IS NULL;

-- name: doubt_summary
UPDATE summary SET doubted_at = :now WHERE conversation = :conversation AND upto >= :number AND doubted_at IS NULL;

-- name: stream_dropped
UPDATE outbox SET state = 'dead', reason = :reason
WHERE turn = :turn AND body = '' AND (state = 'pending' OR state = 'taken' OR state = 'unknown_after_send');

-- name: owed_before
SELECT position, key, person, conversation FROM inbox
WHERE conversation >= :place AND conversation < :until AND (state = 'pending' OR state = 'taken' OR state = 'thought')
    AND owes = 1 AND stopped = 0 AND position < :position;

-- name: stop
UPDATE inbox SET stopped = 1, turn = :turn, state = 'pending', inputs = '{}', not_before = NULL
WHERE key = :key AND (state = 'pending' OR state = 'taken' OR state = 'thought');

-- name: said_there
SELECT turn FROM outbox WHERE receipt = :receipt AND conversation >= :place AND conversation < :until;

-- name: react
INSERT INTO reaction (turn, person, emoji, at, position, is_on) VALUES (:turn, :person, :emoji, :at, :position, :is_on)
ON CONFLICT (turn, person, emoji) DO UPDATE SET at = excluded.at, position = excluded.position, is_on = excluded.is_on
WHERE excluded.position > reaction.position;

-- name: accept
INSERT INTO inbox (key, conversation, position, kind, owes, person, payload, heard_at, turn)
VALUES (:key, :conversation, :position, :kind,
    CASE (SELECT participation FROM conversation WHERE conversation = :conversation)
        WHEN 'consume' THEN 0 WHEN 'always' THEN max(:owes, :said) ELSE :owes END,
    :person, :payload, :now, :turn)
ON CONFLICT (key) DO NOTHING;

-- name: thread_called
INSERT INTO thread (conversation, since, last_at) VALUES (:conversation, :position, :at)
ON CONFLICT (conversation) DO UPDATE SET
    since = min(thread.since, excluded.since),
    last_at = max(thread.last_at, excluded.last_at);

-- name: thread_spoken
UPDATE thread SET last_at = max(last_at, :at) WHERE conversation = :conversation;

-- name: thread_speaks
-- A message that is delivered again names nobody who was erased since.
INSERT INTO thread_speaker (conversation, person) SELECT :conversation, :person
WHERE NOT EXISTS (SELECT 1 FROM inbox WHERE key = :key) ON CONFLICT DO NOTHING;

-- name: thread
SELECT since, last_at, is_quiet,
    (SELECT count(*) FROM thread_speaker WHERE thread_speaker.conversation = :conversation) AS people
FROM thread WHERE conversation = :conversation;

-- name: mark_heard
-- A message that arrived on its own says nothing about those before it: it only opens a channel, at the position where
-- the whole workspace was last swept.
INSERT INTO heard (adapter, channel, position) VALUES (:adapter, :channel, min(:position, coalesce(
  (SELECT position FROM heard WHERE adapter = :adapter AND channel = :workspace), :position)))
ON CONFLICT (adapter, channel) DO NOTHING;

-- name: mark_swept
INSERT INTO heard (adapter, channel, position, swept_at) VALUES (:adapter, :channel, :position, :now)
ON CONFLICT (adapter, channel) DO UPDATE SET position = max(heard.position, excluded.position), swept_at = excluded.swept_at;

-- name: marks
SELECT channel, position FROM heard WHERE adapter = :adapter;

-- name: person_heard
INSERT INTO person (person, name, is_bot, zone, locale, first_at, last_at)
VALUES (:person, :name, :is_bot, :zone, :locale, :now, :now)
ON CONFLICT (person) DO UPDATE
SET name = excluded.name, is_bot = excluded.is_bot, last_at = excluded.last_at,
    zone = CASE excluded.zone WHEN '' THEN person.zone ELSE excluded.zone END,
    locale = CASE excluded.locale WHEN '' THEN person.locale ELSE excluded.locale END
WHERE person.name <> excluded.name OR person.is_bot <> excluded.is_bot OR excluded.zone NOT IN ('', person.zone)
  OR excluded.locale NOT IN ('', person.locale);

-- name: oldest
SELECT seq, payload, state, attempts, boots, not_before, heard_at, inputs, owes, held, turn, stopped,
    boot = :boot AS here FROM inbox
WHERE conversation = :conversation AND (state = 'pending' OR state = 'taken' OR state = 'thought')
ORDER BY position, seq LIMIT 1;

-- name: take
UPDATE inbox SET state = CASE state WHEN 'thought' THEN 'thought' ELSE 'taken' END,
    boots = boots + CASE WHEN boot = :boot THEN 0 ELSE 1 END, boot = :boot, attempts = attempts + 1, taken_at = :now, not_before = NULL,
    inputs = :inputs
WHERE seq = :seq AND (state = 'pending' OR state = 'taken' OR state = 'thought');

-- name: met
UPDATE inbox SET boots = boots + CASE WHEN boot = :boot THEN 0 ELSE 1 END, boot = :boot
WHERE seq = :seq AND (state = 'pending' OR state = 'taken' OR state = 'thought');

-- name: postpone
UPDATE inbox SET state = 'pending', not_before = :not_before, reason = :reason, attempts = max(attempts, :attempts)
WHERE seq = :seq AND (state = 'pending' OR state = 'taken' OR state = 'thought');

-- name: postponed
SELECT 1 AS is_postponed FROM inbox
WHERE conversation = :conversation AND state = 'pending' AND not_before IS NOT NULL LIMIT 1;

-- name: try_now
UPDATE inbox SET not_before = NULL WHERE conversation = :conversation AND state = 'pending' AND not_before IS NOT NULL;

-- name: failing
UPDATE inbox SET reason = :reason WHERE turn = :turn AND (state = 'pending' OR state = 'taken' OR state = 'thought');

-- name: withdraw
UPDATE inbox SET state = 'settled', reason = :reason, settled_at = heard_at,
    payload = CASE WHEN json_valid(payload)
        THEN json_set(payload, '$.text', '', '$.extra', json('{}')) ELSE '{"text":""}' END
WHERE seq = :seq AND (state = 'pending' OR state = 'taken' OR state = 'thought');

-- name: give_up
UPDATE inbox SET state = 'dead', reason = :reason, not_before = NULL
WHERE seq = :seq AND (state = 'pending' OR state = 'taken' OR state = 'thought');

-- name: thought
UPDATE inbox SET state = 'thought' WHERE turn = :turn AND state IN ('pending', 'taken');

-- name: calls
SELECT n, purpose, request_sha256, response, stop_reason, provider, model,
    input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, cost_usd, estimated, ms
FROM step WHERE turn = :turn ORDER BY n;

-- name: turn_edited
UPDATE turn SET edits = edits + 1 WHERE turn = :turn;

-- name: last_position
SELECT position FROM inbox WHERE conversation = :conversation AND (state = 'pending' OR state = 'taken' OR state = 'thought')
ORDER BY position DESC, seq DESC LIMIT 1;

-- name: unfinished
SELECT seq, payload, state, attempts, boots, not_before, heard_at, inputs, owes, held, turn, stopped,
    boot = :boot AS here FROM inbox
WHERE conversation = :conversation AND (state = 'pending' OR state = 'taken' OR state = 'thought')
ORDER BY position, seq LIMIT :most;

-- name: join_turn
UPDATE inbox SET turn = :turn WHERE seq = :seq AND (state = 'pending' OR state = 'taken' OR state = 'thought');

-- name: hold
-- Giving way to a newer message is no failed try.
UPDATE inbox SET state = 'pending', not_before = NULL, held = held + 1, attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END, turn = :turn, reason = 'interrupted', inputs = '{}'
WHERE key = :key AND (state = 'pending' OR state = 'taken' OR state = 'thought');

-- name: held_how_often
SELECT held FROM inbox WHERE key = :key;
