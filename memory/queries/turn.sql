-- WRITE 2: everything that one turn changes.

-- name: turn_known
SELECT 1 FROM turn WHERE turn = :turn;

-- name: conversation_new
-- Returns no row if the conversation exists, or (conversation_moved) if it moved or the turn is known.
INSERT INTO conversation (conversation, audience, version, turns, entries, process, previous_process, params,
    process_memory, invocation_count, entered_at, history_from, first_at, last_at)
VALUES (:conversation, :audience, 1, 1, :entries, :process, :previous_process, :params,
    :process_memory, :invocation_count, :entered_at, :history_from, :at, :at)
ON CONFLICT DO NOTHING RETURNING turns;

-- name: conversation_moved
UPDATE conversation SET audience = :audience, version = version + 1, turns = turns + 1, entries = entries + :entries,
    process = :process, previous_process = :previous_process, params = :params, process_memory = :process_memory,
    invocation_count = :invocation_count, entered_at = :entered_at, history_from = max(history_from, :history_from),
    closed_at = CASE WHEN :answers THEN NULL ELSE closed_at END, last_at = :at
WHERE conversation = :conversation AND version = :version AND NOT EXISTS (SELECT 1 FROM turn WHERE turn = :turn)
RETURNING turns;

-- name: conversation_apologised
-- Nothing was recalled: whatever version the conversation has, its process stays as it is.
INSERT INTO conversation (conversation, audience, version, turns, entries, process, params, process_memory,
    invocation_count, history_from, first_at, last_at)
SELECT :conversation, :audience, 1, 1, :entries, '', '{}', '{}', 0, 1, :at, :at
WHERE NOT EXISTS (SELECT 1 FROM turn WHERE turn = :turn)
ON CONFLICT (conversation) DO UPDATE SET version = version + 1, turns = turns + 1, entries = entries + excluded.entries,
    closed_at = CASE WHEN :answers THEN NULL ELSE closed_at END, last_at = excluded.last_at
RETURNING turns;

-- name: conversation_spoken
INSERT INTO conversation_person (conversation, person, turns) VALUES (:conversation, :person, 1)
ON CONFLICT (conversation, person) DO UPDATE SET turns = turns + 1;

-- name: answer
UPDATE inbox SET state = :state, turn = :turn, settled_at = :settled_at, not_before = NULL, payload = CASE WHEN :state <> 'settled' THEN payload
    WHEN json_valid(payload) THEN json_set(payload, '$.text', '', '$.extra', json('{}')) ELSE '{"text":""}' END
WHERE key = :key AND turn = :turn AND (state = 'pending' OR state = 'taken' OR state = 'thought');

-- name: record_new
INSERT INTO turn_record (rung, verb, flags, steps, attention, changes, thoughts, prompt_sha256, snapshot, kept)
VALUES (:rung, :verb, :flags, '', '', '', '', '', x'', :kept);

-- name: responses_kept
-- The turn's record holds the requests and replies of its calls.
UPDATE step SET response = '', request_sha256 = '' WHERE turn = :turn AND n IN (SELECT value FROM json_each(:calls));

-- name: turn_new
INSERT INTO turn (conversation, number, turn, at, audience, person, nonce, process, shown, record)
VALUES (:conversation, :number, :turn, :at, :audience, :person, :nonce, :process, :shown, :record);

-- name: entry_new
INSERT INTO entry (conversation, number, n, entry_type, content, at, verb, person, name, metadata, position, audience,
    stems)
VALUES (:conversation, :number, :n, :entry_type, :content, :at, :verb, :person, :name, :metadata, :position, :audience,
    :stems);

-- name: blobs_missing
SELECT value FROM json_each(:keys) WHERE NOT EXISTS (SELECT 1 FROM blob WHERE sha256 = value);

-- name: blob_new
INSERT INTO blob (sha256, content) VALUES (:sha256, :content) ON CONFLICT (sha256) DO NOTHING;

-- name: summary_new
INSERT INTO summary (conversation, text, sources, upto, nonce, at)
VALUES (:conversation, :text, :sources, :upto, :nonce, :at)
ON CONFLICT (conversation) DO UPDATE SET text = excluded.text, sources = excluded.sources, upto = excluded.upto,
    nonce = excluded.nonce, at = excluded.at
WHERE excluded.upto >= upto;

-- name: last_expired
-- The latest turn up to :upto that has expired.
SELECT number FROM turn WHERE conversation = :conversation AND number <= :upto AND at < :before
ORDER BY number DESC LIMIT 1;

-- name: entries_let_go
DELETE FROM entry WHERE conversation = :conversation AND number <= :upto;

-- name: entries_fewer
UPDATE conversation SET entries = entries - :fewer WHERE conversation = :conversation;

-- name: audience_known
INSERT INTO audience (audience, revision, known_at) VALUES (:audience, 1, :now)
ON CONFLICT (audience) DO UPDATE SET revision = revision + 1, known_at = excluded.known_at;

-- name: audience_unlisted
INSERT INTO audience (audience, revision, known_at) VALUES (:audience, 1, NULL)
ON CONFLICT (audience) DO UPDATE SET revision = revision + 1, known_at = NULL;

-- name: audience_joined
INSERT INTO audience_member (audience, person) VALUES (:audience, :person) ON CONFLICT DO NOTHING;

-- name: audience_has
SELECT 1 FROM audience_member WHERE audience = :audience AND person = :person;

-- name: audience_emptied
DELETE FROM audience_member WHERE audience = :audience;

-- name: revision_new
INSERT INTO revision (document, at, author, note, turn) VALUES (:document, :at, :author, :note, :turn);

-- name: model_newest
SELECT version, markdown, suspect FROM user_model WHERE person = :person AND audience = :audience AND newest = 1;

-- name: model_retire
UPDATE user_model SET newest = 0 WHERE person = :person AND audience = :audience AND newest = 1;

-- name: model_new
INSERT INTO user_model (person, audience, version, markdown, suspect, newest, revision)
VALUES (:person, :audience, :version, :markdown, :suspect, 1, :revision);

-- name: state_retire
UPDATE soul_state SET newest = 0 WHERE audience = :audience AND key = :key AND newest = 1;

-- name: state_new
INSERT INTO soul_state (key, audience, value, updated_at, newest, revision)
VALUES (:key, :audience, :value, :at, 1, :revision);
