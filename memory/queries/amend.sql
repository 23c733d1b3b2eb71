-- Edits, deletions, stop requests and reactions: what becomes of a message that was heard.

-- name: heard_before
SELECT seq, conversation, position, state, payload, turn, again, edited, person FROM inbox WHERE key = :key;

-- name: amend_waiting
UPDATE inbox SET payload = :payload, edited = :position, turn = :turn, again = :again, inputs = '{}', not_before = NULL,
    state = 'pending'
WHERE seq = :seq AND (state = 'pending' OR state = 'taken' OR state = 'thought');

-- name: amended
UPDATE inbox SET edited = :position WHERE seq = :seq;

-- name: amend_settled
UPDATE inbox SET state = 'settled', settled_at = :now, reason = :reason,
    payload = CASE WHEN json_valid(payload)
        THEN json_set(payload, '$.text', '', '$.extra', json('{}')) ELSE '{"text":""}' END
WHERE key = :key AND (state = 'pending' OR state = 'taken' OR state = 'thought');

-- name: place_of_turn
SELECT conversation, number FROM turn WHERE turn = :turn;

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
SELECT position, key, person, conversation FROM inbox INDEXED BY inbox_unfinished
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
WHERE excluded.position > position;

-- name: reactions_to
SELECT person, emoji, at FROM reaction WHERE turn = :turn AND is_on = 1 ORDER BY person, emoji;
