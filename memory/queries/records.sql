-- What commands read beside a running daemon. None of these stands on the way of a turn.

-- name: count_inbox
SELECT state, count(*) FROM inbox WHERE state <> 'settled' GROUP BY state;

-- name: count_outbox_open
-- scans: only the unsent parts
SELECT count(*) FROM outbox INDEXED BY outbox_open WHERE (state = 'pending' OR state = 'taken' OR state = 'unknown_after_send');

-- name: count_outbox_dead
SELECT count(*) FROM outbox WHERE state = 'dead';

-- name: count_turns
-- scans: one row a conversation
SELECT coalesce(sum(turns), 0) FROM conversation;

-- name: count_turns_since
SELECT count(*) FROM turn WHERE at >= :since;

-- name: conversations
-- scans: it lists them all
SELECT conversation, audience, process, entries, last_at FROM conversation ORDER BY last_at DESC, conversation;

-- name: conversation_shown
SELECT conversation, audience, process, previous_process, invocation_count, params, turns FROM conversation
WHERE conversation = :conversation;

-- name: entries_shown
SELECT t.turn, e.at, e.entry_type, e.verb, e.person, e.content, e.name, e.metadata, e.audience, e.unsaid
FROM entry e JOIN turn t ON t.conversation = e.conversation AND t.number = e.number
WHERE e.conversation = :conversation ORDER BY e.number, e.n;

-- name: turn_shown
SELECT t.turn, t.at, t.conversation, t.number, t.audience, t.person, t.nonce, t.process, t.shown,
    r.rung, r.verb, r.flags, r.steps, r.attention, r.changes, r.thoughts, r.prompt_sha256, r.snapshot,
    r.kept, r.expired_at
FROM turn t JOIN turn_record r ON r.id = t.record WHERE t.turn = :turn;

-- name: turns_span
-- scans: one row a conversation
SELECT (SELECT coalesce(sum(turns), 0) FROM conversation),
    julianday((SELECT max(at) FROM turn)) - julianday((SELECT min(at) FROM turn));

-- name: past_kept
SELECT t.turn, t.nonce, t.shown, r.kept, r.expired_at FROM turn t JOIN turn_record r ON r.id = t.record
WHERE t.conversation = :conversation AND t.number = :number;

-- name: episode_text
SELECT text FROM psyche_episode WHERE id = :id;

-- name: fact_text
SELECT key || ': ' || value FROM psyche_fact WHERE id = :id;

-- name: turn_entries
SELECT entry_type, content, at, verb, person, name, metadata, position, unsaid FROM entry
WHERE conversation = :conversation AND number = :number ORDER BY n;

-- name: turn_perceptions
SELECT payload, state, attempts, heard_at, settled_at, reason FROM inbox WHERE turn = :turn ORDER BY position, seq;

-- name: turn_delivery
SELECT key, part, kind, apology, body, state, receipt, coalesce(sent_at, at) AS at, attempts, reason FROM outbox
WHERE turn = :turn ORDER BY part;

-- name: blob
SELECT content FROM blob WHERE sha256 = :sha256;

-- name: state_shown
-- scans: it lists every audience's
SELECT key, value, audience, updated_at FROM soul_state WHERE newest = 1 ORDER BY id DESC;

-- name: people
-- scans: it lists everyone
SELECT p.person, p.name, p.is_bot, l.canonical,
    (SELECT json_group_array(audience) FROM (SELECT DISTINCT audience FROM user_model m WHERE m.person = p.person ORDER BY audience)) AS audiences,
    (SELECT count(*) FROM user_model m WHERE m.person = p.person) AS versions,
    (SELECT max(r.at) FROM user_model m JOIN revision r ON r.id = m.revision WHERE m.person = p.person) AS updated_at
FROM (SELECT person, name, is_bot FROM person
      UNION ALL SELECT DISTINCT person, '', 0 FROM user_model WHERE person NOT IN (SELECT person FROM person)) p
LEFT JOIN person_link l ON l.person = p.person ORDER BY p.person;

-- name: person_by_id
SELECT person FROM person WHERE person = :person
UNION SELECT canonical FROM person_link WHERE person = :person
UNION SELECT person FROM user_model WHERE person = :person;

-- name: person_by_name
SELECT DISTINCT coalesce(l.canonical, p.person) FROM person p LEFT JOIN person_link l ON l.person = p.person
WHERE p.name = :name ORDER BY 1;

-- name: person_models
SELECT m.audience, m.markdown, f.path AS file, m.version, r.git_commit AS "commit", m.suspect, r.at AS updated_at
FROM user_model m JOIN revision r ON r.id = m.revision
LEFT JOIN archive_file f ON f.person = m.person AND f.audience = m.audience
WHERE m.person = :person AND m.newest = 1 ORDER BY m.audience;

-- name: person_versions
SELECT m.person, m.audience, m.version, r.at, r.note, r.author, r.turn, r.git_commit AS "commit", r.doubted_at, m.suspect, m.markdown
FROM user_model m JOIN revision r ON r.id = m.revision WHERE m.person = :person ORDER BY r.id;

-- name: usage_by_day
-- scans: it counts every call
SELECT substr(at, 1, 10) AS day, count(DISTINCT turn) AS turns, count(*) AS calls, sum(input_tokens) AS input_tokens,
    sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
    sum(output_tokens) AS output_tokens, sum(cost_usd) AS cost_usd
FROM step GROUP BY day ORDER BY day;

-- name: usage_by_model
-- scans: it counts every call
SELECT model, count(DISTINCT turn) AS turns, count(*) AS calls, sum(input_tokens) AS input_tokens,
    sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
    sum(output_tokens) AS output_tokens, sum(cost_usd) AS cost_usd
FROM step GROUP BY model ORDER BY model;

-- name: usage_by_person
-- scans: it counts every call
SELECT coalesce(l.canonical, s.person) AS person, count(DISTINCT turn) AS turns, count(*) AS calls,
    sum(input_tokens) AS input_tokens, sum(cache_read_tokens) AS cache_read_tokens,
    sum(cache_write_tokens) AS cache_write_tokens, sum(output_tokens) AS output_tokens, sum(cost_usd) AS cost_usd
FROM step s LEFT JOIN person_link l ON l.person = s.person GROUP BY 1 ORDER BY 1;

-- name: usage_by_conversation
-- scans: it counts every call
SELECT conversation, count(DISTINCT turn) AS turns, count(*) AS calls, sum(input_tokens) AS input_tokens,
    sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
    sum(output_tokens) AS output_tokens, sum(cost_usd) AS cost_usd
FROM step GROUP BY conversation ORDER BY conversation;

-- name: usage_by_job
-- scans: it counts every call
SELECT purpose AS job, count(DISTINCT turn) AS turns, count(*) AS calls, sum(input_tokens) AS input_tokens,
    sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
    sum(output_tokens) AS output_tokens, sum(cost_usd) AS cost_usd
FROM step GROUP BY purpose ORDER BY purpose;

-- name: usage_total
-- scans: it counts every call
SELECT count(DISTINCT turn) AS turns, count(*) AS calls, coalesce(sum(input_tokens), 0) AS input_tokens,
    coalesce(sum(cache_read_tokens), 0) AS cache_read_tokens, coalesce(sum(cache_write_tokens), 0) AS cache_write_tokens,
    coalesce(sum(output_tokens), 0) AS output_tokens, coalesce(sum(cost_usd), 0.0) AS cost_usd
FROM step;

-- name: dead
SELECT 'heard' AS what, key, turn, reason, heard_at AS at FROM inbox
WHERE state <> 'settled' AND state = 'dead'
UNION ALL SELECT 'said', key, turn, reason, at FROM outbox WHERE state = 'dead' ORDER BY at DESC, what;

-- name: archive_lag
SELECT count(*) FROM revision WHERE git_commit IS NULL;
