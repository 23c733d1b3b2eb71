-- `store.turns`: what one turn may know, read in one snapshot; WRITE 2, everything that it changes; its record.

-- name: conversations_quiet
-- Conversations whose last turn lies in a window, latest first.
SELECT conversation, audience, last_at FROM conversation WHERE last_at <= :until AND last_at > :since
ORDER BY last_at DESC LIMIT :most;

-- name: last_spoken
SELECT number, person FROM turn WHERE conversation = :conversation AND person <> '' ORDER BY number DESC LIMIT 1;

-- name: conversations_expired
-- Conversations in which every entry has expired but is still stored, oldest first; none whose summary came to nothing
-- after :tried.
SELECT conversation, audience FROM conversation c WHERE last_at < :before AND entries > 0 AND NOT EXISTS (
    SELECT 1 FROM step s WHERE s.at > :tried AND s.conversation = c.conversation AND s.purpose = 'summary'
        AND s.at > coalesce((SELECT m.at FROM summary m WHERE m.conversation = c.conversation), ''))
ORDER BY last_at LIMIT :most;

-- name: calls_unasked
-- scans: the turns and model calls since :since, once an hour
SELECT (SELECT count(*) FROM step WHERE at > :since) AS calls,
    (SELECT count(*) FROM turn WHERE at > :since AND person <> '' AND audience <> 'self') AS spoken;

-- name: proactive_since
SELECT c.audience, o.at FROM outbox o LEFT JOIN conversation c ON c.conversation = o.conversation
WHERE o.kind = 'proactive' AND o.part = 0 AND o.at > :since ORDER BY o.at;

-- name: spoken_last_at
-- scans: the turns since then, latest first, until one of that audience; only where the soul may write first
SELECT at FROM turn WHERE at > :since AND person <> ''
    AND audience IN (SELECT value FROM json_each(:audiences)) ORDER BY at DESC LIMIT 1;

-- name: waits_there
-- What people said there and waits, beside this perception.
SELECT count(*) AS waiting FROM inbox WHERE conversation = :conversation AND (state = 'pending' OR state = 'taken' OR state = 'thought')
    AND key <> :key AND kind IN ('message', 'mention', 'command');

-- name: first_words_before
-- What the soul is about to say first to the same audience and was to say earlier; open perceptions are few.
SELECT count(*) AS under_way FROM inbox WHERE (state = 'pending' OR state = 'taken' OR state = 'thought') AND owes = 0
    AND seq < (SELECT seq FROM inbox WHERE key = :key) AND json_extract(payload, '$.extra.process') = :process
    AND json_extract(payload, '$.audience') IN (SELECT value FROM json_each(:audiences));

-- name: recent_conversations
SELECT conversation FROM conversation WHERE last_at >= :since
  AND conversation >= :network || ':' AND conversation < :network || ';' ORDER BY last_at DESC;

-- name: call_keep
-- scans: one constant row
-- Of a turn that was heard it has its time, its place and its person, as `call_of_heard` would give them.
INSERT INTO step (turn, n, at, conversation, person, purpose, request_sha256, response, stop_reason, provider, model,
    input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, cost_usd, estimated, ms)
SELECT :turn, :n, coalesce(i.taken_at, i.heard_at, :at), coalesce(i.conversation, :conversation), coalesce(i.person, :person),
    :purpose, :request_sha256, :response, :stop_reason, :provider, :model,
    :input_tokens, :cache_read_tokens, :cache_write_tokens, :output_tokens, :cost_usd, :estimated, :ms
FROM (SELECT 1 AS one) o LEFT JOIN inbox i ON i.seq = (SELECT min(seq) FROM inbox WHERE turn = :turn)
WHERE true ON CONFLICT (turn, n) DO UPDATE SET purpose = excluded.purpose, request_sha256 = excluded.request_sha256,
    response = excluded.response, stop_reason = excluded.stop_reason, provider = excluded.provider, model = excluded.model,
    input_tokens = excluded.input_tokens, cache_read_tokens = excluded.cache_read_tokens,
    cache_write_tokens = excluded.cache_write_tokens, output_tokens = excluded.output_tokens,
    cost_usd = excluded.cost_usd, estimated = excluded.estimated, ms = excluded.ms;

-- name: call_of_heard
INSERT INTO step (turn, n, at, conversation, person, purpose, request_sha256, response, stop_reason, provider, model,
    input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, cost_usd, estimated, ms)
SELECT turn, :n, coalesce(taken_at, heard_at), conversation, person, :purpose, :request_sha256, :response, :stop_reason, :provider, :model,
    :input_tokens, :cache_read_tokens, :cache_write_tokens, :output_tokens, :cost_usd, :estimated, :ms
FROM inbox WHERE turn = :turn ORDER BY seq LIMIT 1
ON CONFLICT (turn, n) DO NOTHING;

-- name: spent_since
SELECT coalesce(sum(cost_usd), 0.0) AS cost_usd FROM step WHERE at >= :since;

-- name: spent_since_on
SELECT coalesce(sum(cost_usd), 0.0) AS cost_usd FROM step
WHERE at >= :since AND person IN (SELECT value FROM json_each(:ids));

-- name: spent_since_in
SELECT coalesce(sum(cost_usd), 0.0) AS cost_usd FROM step
WHERE at >= :since AND conversation >= :channel || ':' AND conversation < :channel || ';';

-- name: last_answer
-- scans: the turns of one channel, once per question
SELECT turn, conversation, number FROM turn
WHERE conversation >= :place AND conversation < :until
  AND person IN (SELECT value FROM json_each(:ids)) ORDER BY at DESC LIMIT 1;

-- name: turn_sources
SELECT t.at, t.shown, CASE WHEN r.expired_at IS NULL THEN r.snapshot ELSE substr(r.snapshot, 1, 0) END AS snapshot, r.kept FROM turn t JOIN turn_record r ON r.id = t.record WHERE t.turn = :turn;

-- name: heard_lately
SELECT position FROM entry WHERE conversation = :conversation AND number <= :number AND entry_type = 'userMessage'
ORDER BY number DESC, n DESC LIMIT :most;

-- name: kept
SELECT value FROM kept WHERE conversation = :conversation AND name = :name;

-- name: place_recalled
-- scans: one constant row
-- One row, also of a conversation that is not there yet: its version is null. Whether a perception is still to be
-- answered in this turn, and nothing earlier has come; the audience's task, if it was set in this conversation or by hand.
SELECT c.version, c.turns, c.process, c.previous_process, c.params, c.process_memory, c.invocation_count, c.entered_at,
    c.history_from, s.text, s.sources, coalesce(s.upto, 0) AS upto, s.nonce, c.conversation, c.last_at, c.participation,
    (SELECT coalesce(sum(p.turns), 0) FROM conversation_person p WHERE p.conversation = c.conversation) AS spoken,
    (SELECT t.at FROM turn t WHERE t.conversation = c.conversation AND t.number = coalesce(s.upto, 0) + 1) AS unsummarised_at,
    EXISTS (SELECT 1 FROM due WHERE fired_turn IS NULL AND short > 0) AS plans_wait,
    EXISTS (SELECT 1 FROM belief) AS believes,
    EXISTS (SELECT 1 FROM inbox i WHERE i.seq = :seq AND i.turn = :turn
        AND (i.state = 'pending' OR i.state = 'taken' OR i.state = 'thought')
        AND NOT EXISTS (SELECT 1 FROM inbox e WHERE e.conversation = i.conversation
            AND (e.state = 'pending' OR e.state = 'taken' OR e.state = 'thought') AND (e.position, e.seq) < (i.position, i.seq))
    ) AS is_next,
    (SELECT k.value FROM soul_state k JOIN revision r ON r.id = k.revision
        WHERE k.key = :key AND k.audience = :audience AND k.newest = 1
        AND (r.turn IS NULL OR EXISTS (SELECT 1 FROM turn t WHERE t.turn = r.turn AND t.conversation = :conversation))
    ) AS task
FROM (SELECT 1 AS one) o LEFT JOIN conversation c ON c.conversation = :conversation
LEFT JOIN summary s ON s.conversation = c.conversation;

-- name: counsel_recalled
-- scans: twenty beliefs, if the cortex is at work; for assessments see `assessments_shown`
WITH RECURSIVE judged (sources) AS (
    SELECT min(sources) FROM assessment WHERE peer_id = :peer_id
    UNION ALL
    SELECT (SELECT min(a.sources) FROM assessment a WHERE a.peer_id = :peer_id AND a.sources > judged.sources)
    FROM judged WHERE judged.sources IS NOT NULL)
SELECT 'assessment' AS what, a.id, a.info_score, a.trust, a.author, a.rationale, a.created_at, a.sources, NULL AS key,
    NULL AS value, NULL AS source_cycle, NULL AS ttl_minutes, NULL AS peer_id, NULL AS audience, NULL AS state, NULL AS evidence
FROM judged CROSS JOIN assessment a WHERE a.id IN (
    SELECT n.id FROM assessment n WHERE n.peer_id = :peer_id AND n.sources = judged.sources ORDER BY n.id DESC LIMIT :most)
UNION ALL
SELECT 'belief', NULL, NULL, NULL, NULL, '', created_at, sources, key, value, source_cycle, ttl_minutes, peer_id, audience,
    state, '[]'
FROM belief WHERE :beliefs = 1 AND state <> 'disputed';

-- name: turns_recalled
SELECT number, turn, nonce, at, audience, shown, edits FROM turn
WHERE conversation = :conversation AND number >= :first ORDER BY number DESC LIMIT :most;

-- name: turns_left
-- Turns that left the rendered history but are not summarised, oldest first.
SELECT number, turn, nonce, at, audience, shown, edits FROM turn
WHERE conversation = :conversation AND number > :upto AND number < :first ORDER BY number LIMIT :most;

-- name: turns_from_to
SELECT f.at AS first_at, l.at AS last_at FROM turn f JOIN turn l ON l.conversation = f.conversation AND l.number = :last
WHERE f.conversation = :conversation AND f.number = :first;

-- name: entries_recalled
SELECT number, entry_type, content, at, verb, person, name, metadata, position, stems FROM entry
WHERE conversation = :conversation AND number BETWEEN :first AND :last AND unsaid = 0 ORDER BY number, n;

-- name: person_recalled
SELECT name, is_bot, coalesce(nullif(set_zone, ''), zone) AS zone FROM person WHERE person = :person;

-- name: turns_here
-- scans: one constant row
-- One row, or one for each thing that the person said of their name, wherever they said it.
SELECT c.turns, c.last_at, coalesce(nullif(p.set_zone, ''), p.zone, '') AS zone, coalesce(p.locale, '') AS locale,
  f.text, f.audience, f.stated_s
FROM (SELECT 1 AS one) o LEFT JOIN person p ON p.person = :person
LEFT JOIN conversation_person c ON c.conversation = :conversation AND c.person = :person
LEFT JOIN fact f ON f.person = :person AND f.kind = 'name' AND f.about = '' AND f.ended_at IS NULL AND f.hidden_at IS NULL;

-- name: answered_in
SELECT 1 FROM interaction WHERE peer_id = :person AND direction = 'out' AND audience = :audience LIMIT 1;

-- name: answered_before
-- Whether the soul has answered somebody anywhere.
SELECT 1 FROM interaction WHERE peer_id = :person AND direction = 'out' LIMIT 1;

-- name: models_recalled
SELECT person, audience, version, markdown, suspect FROM user_model WHERE person = :person AND newest = 1 ORDER BY audience;

-- name: model_version
SELECT markdown FROM user_model WHERE person = :person AND audience = :audience AND version = :version;

-- name: state_of_audiences
SELECT s.id, s.key, s.value, s.audience, s.updated_at FROM json_each(:audiences) AS a
CROSS JOIN soul_state AS s WHERE s.audience = a.value AND s.newest = 1;

-- name: state_of_keys
SELECT s.id, s.key, s.value, s.audience, s.updated_at FROM json_each(:keys) k
CROSS JOIN soul_state s WHERE s.id = (SELECT max(n.id) FROM soul_state n WHERE n.key = k.value AND n.newest = 1);

-- name: called_before
-- scans: until the first step of another turn
SELECT 1 FROM step WHERE turn <> :turn LIMIT 1;

-- name: records_old
SELECT t.turn, t.record, t.at, t.conversation, t.number, r.kept, r.snapshot
FROM turn t JOIN turn_record r ON r.id = t.record AND r.expired_at IS NULL
WHERE t.at >= :since AND t.at < :before ORDER BY t.at LIMIT :most;

-- name: records_after
SELECT r.kept, r.snapshot FROM turn t JOIN turn_record r ON r.id = t.record AND r.expired_at IS NULL
WHERE t.conversation = :conversation AND t.number > :number ORDER BY t.number;

-- name: blob_expired
DELETE FROM blob WHERE sha256 = :sha256;

-- name: record_expired
-- Of what stood in its prompt the ids stay, for whoever is erased later.
UPDATE turn_record SET expired_at = :now, kept = NULL, snapshot = :seen, attention = '', changes = '', thoughts = '',
    flags = '[]', steps = '', prompt_sha256 = '' WHERE id = :id;

-- name: responses_expired
UPDATE step SET response = '', request_sha256 = '' WHERE turn = :turn;

-- name: records_expired_to
INSERT INTO checkpoint (id, records_at) VALUES (1, :at) ON CONFLICT (id) DO UPDATE SET records_at = excluded.records_at;

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
    closed_at = CASE :answers WHEN 1 THEN NULL ELSE closed_at END, last_at = :at
WHERE conversation = :conversation AND version = :version AND NOT EXISTS (SELECT 1 FROM turn WHERE turn = :turn)
RETURNING turns;

-- name: conversation_apologised
-- Nothing was recalled: whatever version the conversation has, its process stays as it is.
INSERT INTO conversation (conversation, audience, version, turns, entries, process, params, process_memory,
    invocation_count, history_from, first_at, last_at)
SELECT :conversation, :audience, 1, 1, :entries, '', '{}', '{}', 0, 1, :at, :at
WHERE NOT EXISTS (SELECT 1 FROM turn WHERE turn = :turn)
ON CONFLICT (conversation) DO UPDATE SET version = conversation.version + 1, turns = conversation.turns + 1,
    entries = conversation.entries + excluded.entries, closed_at = CASE :answers WHEN 1 THEN NULL ELSE conversation.closed_at END,
    last_at = excluded.last_at
RETURNING turns;

-- name: conversation_spoken
INSERT INTO conversation_person (conversation, person, turns, last_at) VALUES (:conversation, :person, 1, :at)
ON CONFLICT (conversation, person) DO UPDATE SET turns = conversation_person.turns + 1, last_at = excluded.last_at
RETURNING EXISTS (SELECT 1 FROM audience_member WHERE audience = :together AND person = :person) AS can_see;

-- name: answer
UPDATE inbox SET state = :state, turn = :turn, settled_at = :settled_at, not_before = NULL, payload = CASE WHEN :state <> 'settled' THEN payload
    WHEN json_valid(payload) THEN json_set(payload, '$.text', '', '$.extra', json('{}')) ELSE '{"text":""}' END
WHERE key = :key AND turn = :turn AND (state = 'pending' OR state = 'taken' OR state = 'thought');

-- name: record_new
INSERT INTO turn_record (rung, verb, flags, steps, attention, changes, thoughts, prompt_sha256, snapshot, kept)
VALUES (:rung, :verb, :flags, '', '', '', '', '', :snapshot, :kept);

-- name: turn_new
INSERT INTO turn (conversation, number, turn, at, audience, person, nonce, process, shown, record)
VALUES (:conversation, :number, :turn, :at, :audience, :person, :nonce, :process, :shown,
    (SELECT max(id) FROM turn_record)); -- the one that was just kept

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
WHERE excluded.upto >= summary.upto;

-- name: last_expired
-- The latest turn up to :upto that has expired.
SELECT number FROM turn WHERE conversation = :conversation AND number <= :upto AND at < :before
ORDER BY number DESC LIMIT 1;

-- name: entries_let_go
DELETE FROM entry WHERE conversation = :conversation AND number <= :upto;

-- name: entries_fewer
UPDATE conversation SET entries = entries - :fewer WHERE conversation = :conversation;

-- name: whisper_used
UPDATE whisper SET state = 'used', used_turn = :turn WHERE id = :id AND used_turn IS NULL AND state <> 'erased';
