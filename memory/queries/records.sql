-- What commands read beside a running daemon. No turn waits for any of these.

-- name: reactions_to
SELECT person, emoji, at FROM reaction WHERE turn = :turn AND is_on = 1 ORDER BY person, emoji;

-- name: jobs_shown
-- scans: one row per job
SELECT job, next_due, started_at, ended_at, outcome, failures FROM job ORDER BY next_due, job;

-- name: ledger_peers
-- scans: a command lists them all
SELECT peer_id FROM peer ORDER BY last_at DESC;

-- name: kinds_heard
-- scans: only `claudius doctor`
SELECT DISTINCT CASE WHEN key LIKE '%:home:%' THEN 'home' ELSE kind END AS kind FROM inbox
WHERE conversation >= :prefix AND conversation < :after;

-- name: plans_shown
-- scans: a command lists every pending plan, those that are due and wait, and those that lapsed
SELECT d.id, d.kind, d.scheduled_for AS due_at, d.conversation, d.process, d.params, d.text, d.lapsed_at, d.short, d.repeat,
    d.zone, CASE WHEN i.seq IS NULL THEN d.state ELSE 'waiting' END AS state, i.state AS heard,
    i.not_before, i.reason, (SELECT count(*) FROM inbox a WHERE a.conversation = d.conversation AND a.seq < i.seq
        AND (a.state = 'pending' OR a.state = 'taken' OR a.state = 'thought')) AS ahead
FROM due d LEFT JOIN inbox i ON i.key = 'due:' || d.kind || ':' || d.scheduled_for AND i.state NOT IN ('settled', 'dead')
WHERE d.fired_turn IS NULL OR d.lapsed_at IS NOT NULL OR i.seq IS NOT NULL ORDER BY d.scheduled_for, d.id;

-- name: positions
-- scans: one row per conversation
SELECT conversation, process, previous_process, invocation_count, last_at FROM conversation ORDER BY process, conversation;

-- name: psyche_edges_shown
-- scans: only when a person asks to see them all
SELECT edge FROM psyche_edge ORDER BY person;

-- name: psyche_traces_shown
-- scans: only when the owner asks how the numbers moved
-- What has moved since then, and the last values before it.
SELECT t.turn, t.at, t.person, t.inputs, t.after, t.edges, coalesce(t.arcs, 'null') AS arcs, t.moved, k.traits FROM psyche_trace t
JOIN psyche_kernel k ON k.kernel = t.kernel WHERE t.at >= :since OR t.id IN (
    SELECT max(id) FROM psyche_trace WHERE at < :since GROUP BY person
    UNION ALL SELECT max(id) FROM psyche_trace WHERE at < :since AND arcs IS NOT NULL
) ORDER BY t.id;

-- name: psyche_traits
SELECT k.traits FROM psyche_state s JOIN psyche_kernel k ON k.kernel = s.kernel WHERE s.id = 1;

-- name: count_inbox
SELECT state, count(*) AS waiting FROM inbox WHERE state <> 'settled' GROUP BY state;

-- name: count_outbox_open
-- scans: only the unsent parts
SELECT count(*) AS parts FROM outbox WHERE (state = 'pending' OR state = 'taken' OR state = 'unknown_after_send');

-- name: count_outbox_dead
SELECT count(*) AS parts FROM outbox WHERE state = 'dead';

-- name: count_turns
-- scans: one row per conversation
SELECT coalesce(sum(turns), 0) AS turns FROM conversation;

-- name: count_turns_since
SELECT count(*) AS turns FROM turn WHERE at >= :since;

-- name: waits_since
SELECT 'inbox' AS queue, min(heard_at) AS at FROM inbox WHERE state <> 'settled' AND state <> 'dead'
UNION ALL SELECT 'outbox', min(at) FROM outbox
WHERE (state = 'pending' OR state = 'taken' OR state = 'unknown_after_send');

-- name: conversations
-- scans: a command lists them all
SELECT conversation, audience, process, entries, last_at FROM conversation WHERE audience <> 'self' ORDER BY last_at DESC, conversation;

-- name: conversation_shown
SELECT conversation, audience, process, previous_process, invocation_count, params, turns FROM conversation
WHERE conversation = :conversation;

-- name: diaries
-- scans: the moments of these conversations, a JSON array, for an owner who looks
SELECT m.conversation, m.audience, m.at_s, m.text AS diary, m.pictures AS keys FROM json_each(:conversations) q
CROSS JOIN moment m WHERE m.conversation = q.value AND m.person = '' AND m.is_own = 0 ORDER BY m.id;

-- name: entries_shown
SELECT t.turn, e.at, e.entry_type, e.verb, e.person, e.content, e.name, e.metadata, e.audience, e.unsaid
FROM entry e JOIN turn t ON t.conversation = e.conversation AND t.number = e.number
WHERE e.conversation = :conversation ORDER BY e.number, e.n;

-- name: turns_page
SELECT t.turn, t.number, t.at, t.audience, t.person, t.process, r.kept, r.expired_at FROM turn t JOIN turn_record r ON r.id = t.record
WHERE t.conversation = :conversation AND t.number < :before ORDER BY t.number DESC LIMIT :most;

-- name: turn_number
SELECT number FROM turn WHERE turn = :turn AND conversation = :conversation;

-- name: entries_page
SELECT t.turn, e.at, e.entry_type, e.verb, e.person, e.content, e.name, e.metadata, e.audience, e.unsaid
FROM entry e JOIN turn t ON t.conversation = e.conversation AND t.number = e.number
WHERE e.conversation = :conversation AND e.number >= :low AND e.number < :before ORDER BY e.number, e.n;

-- name: turns_heard
-- The ledger's line of what each turn heard.
SELECT turn, peer_id AS person, at, preview FROM interaction
WHERE turn IN (SELECT value FROM json_each(:turns)) AND direction = 'in';

-- name: turns_between
SELECT t.turn, t.conversation, t.process, (SELECT i.preview FROM interaction i WHERE i.turn = t.turn AND i.direction = 'in'
    LIMIT 1) AS preview
FROM turn t WHERE t.at >= :begin AND t.at <= :end ORDER BY t.at;

-- name: newest_kept
-- scans: backwards from the newest record, a bounded number; a command asks
SELECT t.turn FROM turn_record r JOIN turn t ON t.record = r.id WHERE r.expired_at IS NULL
ORDER BY r.id DESC LIMIT :most;

-- name: interactions_shown
SELECT id, peer_id AS peer, at, direction, channel_type, conversation, audience, turn, scope, preview, reaction FROM interaction
WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(:ids)) ORDER BY id;

-- name: whispers_told
-- scans: a command lists the newest
SELECT id, daimon, text, influence, transport, sources, conversation, at, expires_at, state, used_turn FROM whisper
ORDER BY id DESC LIMIT :most;

-- name: turn_shown
SELECT t.turn, t.at, t.conversation, t.number, t.audience, t.person, t.nonce, t.process, t.shown,
    r.rung, r.verb, r.flags, r.steps, r.attention, r.changes, r.thoughts, r.prompt_sha256, r.snapshot,
    r.kept, r.expired_at
FROM turn t JOIN turn_record r ON r.id = t.record WHERE t.turn = :turn;

-- name: last_unfinished
-- scans: backwards from the newest, until one that is not settled; a command asks
-- Of an audience, or of all if it is empty.
SELECT turn FROM inbox WHERE (state = 'pending' OR state = 'taken' OR state = 'thought' OR state = 'dead')
    AND (:audience = '' OR json_valid(payload) AND json_extract(payload, '$.audience') = :audience)
ORDER BY seq DESC LIMIT 1;

-- name: last_turn
-- scans: backwards from the newest record, until one of the audience
SELECT t.turn FROM turn_record r JOIN turn t ON t.record = r.id WHERE :audience IN ('', t.audience) ORDER BY r.id DESC LIMIT 1;

-- name: failing_now
-- scans: backwards from the newest, until one that is not settled; a command asks
SELECT turn, heard_at AS at, reason, NULL AS kept FROM inbox
WHERE (state = 'pending' OR state = 'taken' OR state = 'thought' OR state = 'dead') AND reason LIKE '{%' ORDER BY seq DESC LIMIT 1;

-- name: newest_record
-- scans: the newest record, found by its key
SELECT t.turn, t.at, NULL AS reason, r.kept FROM turn_record r JOIN turn t ON t.record = r.id
WHERE r.id = (SELECT max(id) FROM turn_record);

-- name: turns_span
-- scans: one row per conversation
SELECT (SELECT coalesce(sum(turns), 0) FROM conversation) AS turns,
    julianday((SELECT max(at) FROM turn)) - julianday((SELECT min(at) FROM turn)) AS days;

-- name: past_kept
SELECT t.turn, t.nonce, t.shown, r.kept, r.expired_at FROM turn t JOIN turn_record r ON r.id = t.record
WHERE t.conversation = :conversation AND t.number = :number;

-- name: turn_kept
SELECT r.kept FROM turn t JOIN turn_record r ON r.id = t.record WHERE t.turn = :turn;

-- name: moment_text
SELECT text FROM moment_said WHERE id = :id;

-- name: fact_text
-- As a turn before facts had numbers showed it.
SELECT CASE former WHEN '' THEN text ELSE former END AS text FROM fact WHERE id = :id;

-- name: fact_ended_text
SELECT text || ' (' || CASE WHEN since IS NULL THEN '' ELSE 'since ' || since || ', ' END || 'until '
    || coalesce(substr(ended_at, 1, 10), until) || CASE why WHEN '' THEN '' ELSE ': ' || why END || ')' AS text
FROM fact WHERE id = :id;

-- name: fact_here
SELECT text, keys, about FROM fact WHERE id = :id;

-- name: matter_here
SELECT text FROM matter WHERE id = :id;

-- name: turn_entries
SELECT entry_type, content, at, verb, person, name, metadata, position, unsaid FROM entry
WHERE conversation = :conversation AND number = :number ORDER BY n;

-- name: turn_perceptions
SELECT payload, state, attempts, heard_at, settled_at, reason FROM inbox WHERE turn = :turn ORDER BY position, seq;

-- name: turn_delivery
SELECT key, part, kind, apology, body, receipts, state, receipt, coalesce(sent_at, at) AS at, attempts, reason FROM outbox
WHERE turn = :turn ORDER BY part;

-- name: blob
SELECT content FROM blob WHERE sha256 = :sha256;

-- name: state_shown
-- scans: a command lists those of every audience
SELECT key, value, audience, updated_at FROM soul_state WHERE newest = 1 ORDER BY id DESC;

-- name: people
-- scans: a command lists everyone
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

-- name: person_models
SELECT m.audience, m.markdown, f.path AS file, m.version, r.git_commit AS "commit", m.suspect, r.at AS updated_at
FROM user_model m JOIN revision r ON r.id = m.revision
LEFT JOIN archive_file f ON f.person = m.person AND f.audience = m.audience
WHERE m.person = :person AND m.newest = 1 ORDER BY m.audience;

-- name: person_versions
SELECT m.person, m.audience, m.version, r.at, r.note, r.author, r.turn, r.git_commit AS "commit", r.doubted_at, m.suspect, m.markdown
FROM user_model m JOIN revision r ON r.id = m.revision WHERE m.person = :person ORDER BY r.id;

-- name: usage_by_day
-- cost_usd: null where no price is known; unpriced: how many calls have none
-- scans: a command counts every call
SELECT substr(at, 1, 10) AS day, count(DISTINCT turn) AS turns, count(*) AS calls, sum(input_tokens) AS input_tokens,
    sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
    sum(output_tokens) AS output_tokens, sum(cost_usd) AS cost_usd, count(*) - count(cost_usd) AS unpriced
FROM step GROUP BY day ORDER BY day;

-- name: usage_by_model
-- scans: a command counts every call
SELECT model, count(DISTINCT turn) AS turns, count(*) AS calls, sum(input_tokens) AS input_tokens,
    sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
    sum(output_tokens) AS output_tokens, sum(cost_usd) AS cost_usd, count(*) - count(cost_usd) AS unpriced
FROM step GROUP BY model ORDER BY model;

-- name: usage_by_person
-- scans: a command counts every call
-- Of an erased person the cost stays, without a name; what the soul thought of its own accord is its own.
SELECT CASE WHEN s.person <> '' THEN coalesce(l.canonical, s.person)
    WHEN s.request_sha256 = '' AND s.conversation = '' AND s.purpose <> 'cortex' THEN 'erased' ELSE 'self' END AS person,
    count(DISTINCT turn) AS turns, count(*) AS calls,
    sum(input_tokens) AS input_tokens, sum(cache_read_tokens) AS cache_read_tokens,
    sum(cache_write_tokens) AS cache_write_tokens, sum(output_tokens) AS output_tokens, sum(cost_usd) AS cost_usd, count(*) - count(cost_usd) AS unpriced
FROM step s LEFT JOIN person_link l ON l.person = s.person GROUP BY 1 ORDER BY 1;

-- name: usage_by_conversation
-- scans: a command counts every call
SELECT CASE WHEN conversation <> '' THEN conversation WHEN request_sha256 = '' AND purpose <> 'cortex' THEN 'erased' ELSE 'self' END
    AS conversation, count(DISTINCT turn) AS turns, count(*) AS calls, sum(input_tokens) AS input_tokens,
    sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
    sum(output_tokens) AS output_tokens, sum(cost_usd) AS cost_usd, count(*) - count(cost_usd) AS unpriced
FROM step GROUP BY 1 ORDER BY 1;

-- name: usage_by_job
-- scans: a command counts every call
SELECT purpose AS job, count(DISTINCT turn) AS turns, count(*) AS calls, sum(input_tokens) AS input_tokens,
    sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
    sum(output_tokens) AS output_tokens, sum(cost_usd) AS cost_usd, count(*) - count(cost_usd) AS unpriced
FROM step GROUP BY purpose ORDER BY purpose;

-- name: usage_total
-- scans: a command counts every call
SELECT count(DISTINCT turn) AS turns, count(*) AS calls, coalesce(sum(input_tokens), 0) AS input_tokens,
    coalesce(sum(cache_read_tokens), 0) AS cache_read_tokens, coalesce(sum(cache_write_tokens), 0) AS cache_write_tokens,
    coalesce(sum(output_tokens), 0) AS output_tokens, sum(cost_usd) AS cost_usd, count(*) - count(cost_usd) AS unpriced
FROM step;

-- name: dead
SELECT 'heard' AS what, key, turn, reason, heard_at AS at FROM inbox
WHERE state <> 'settled' AND state = 'dead'
UNION ALL SELECT 'said', key, turn, reason, at FROM outbox WHERE state = 'dead' ORDER BY at DESC, what;

-- name: archive_lag
SELECT count(*) AS revisions FROM revision WHERE git_commit IS NULL;

-- name: rows_invalid
-- Rows with a value that turns or commands could not decode: JSON of another kind than its column's, or no instant.
-- scans: doctor reads everything once
SELECT 'inbox' AS "table", CAST(seq AS TEXT) AS "row" FROM inbox WHERE NOT (
    json_valid(payload) AND payload LIKE '{%' AND json_valid(inputs) AND inputs LIKE '{%'
    AND heard_at LIKE '____-__-__T%' AND not_before LIKE '____-__-__T%')
UNION ALL SELECT 'outbox' AS "table", key AS "row" FROM outbox WHERE NOT (
    json_valid(answers) AND answers LIKE '[%' AND json_valid(receipts) AND receipts LIKE '[%' AND at LIKE '____-__-__T%'
    AND not_before LIKE '____-__-__T%')
UNION ALL SELECT 'audited' AS "table", CAST(id AS TEXT) AS "row" FROM audited WHERE NOT (json_valid(digests) AND digests LIKE '{%')
UNION ALL SELECT 'due' AS "table", CAST(id AS TEXT) AS "row" FROM due WHERE NOT (
    json_valid(params) AND params LIKE '{%' AND scheduled_for LIKE '____-__-__T%')
UNION ALL SELECT 'conversation' AS "table", conversation AS "row" FROM conversation WHERE NOT (
    json_valid(params) AND params LIKE '{%' AND json_valid(process_memory) AND process_memory LIKE '{%'
    AND entered_at LIKE '____-__-__T%' AND last_at LIKE '____-__-__T%')
UNION ALL SELECT 'summary' AS "table", conversation AS "row" FROM summary WHERE NOT (
    json_valid(sources) AND sources LIKE '[%')
UNION ALL SELECT 'turn' AS "table", conversation || '/' || number AS "row" FROM turn WHERE NOT (
    json_valid(shown) AND shown LIKE '[%' AND at LIKE '____-__-__T%')
UNION ALL SELECT 'turn_record' AS "table", CAST(id AS TEXT) AS "row" FROM turn_record WHERE NOT (
    json_valid(flags) AND flags LIKE '[%')
    OR kept IS NULL AND expired_at IS NULL AND NOT (json_valid(steps) AND steps LIKE '[%'
    AND json_valid(attention) AND attention LIKE '{%' AND json_valid(changes) AND changes LIKE '{%'
    AND json_valid(thoughts) AND thoughts LIKE '[%')
UNION ALL SELECT 'entry' AS "table", conversation || '/' || number || '/' || n AS "row" FROM entry WHERE NOT (
    json_valid(coalesce(metadata, '{}')) AND coalesce(metadata, '{}') LIKE '{%'
    AND entry_type IN ('userMessage', 'internalMonologue', 'externalDialog', 'mentalQuery',
    'perception', 'event', 'daimonicIntuition', 'daimonSpeech', 'toolUse', 'toolResult')
    AND at LIKE '____-__-__T%')
UNION ALL SELECT 'kept' AS "table", conversation || '/' || name AS "row" FROM kept WHERE NOT (
    json_valid(value) AND value LIKE '{%')
UNION ALL SELECT 'assessment' AS "table", CAST(id AS TEXT) AS "row" FROM assessment WHERE NOT (
    json_valid(sources) AND sources LIKE '[%' AND created_at LIKE '____-__-__T%')
UNION ALL SELECT 'promise' AS "table", CAST(id AS TEXT) AS "row" FROM promise WHERE NOT (
    json_valid(stems) AND stems LIKE '[%' AND made_at LIKE '____-__-__T%'
    AND due_at LIKE '____-__-__T%')
UNION ALL SELECT 'belief' AS "table", key || '/' || audience AS "row" FROM belief WHERE NOT (
    json_valid(sources) AND sources LIKE '[%' AND json_valid(evidence) AND evidence LIKE '[%'
    AND created_at LIKE '____-__-__T%')
UNION ALL SELECT 'lesson' AS "table", key || '/' || audience AS "row" FROM lesson WHERE NOT (
    json_valid(sources) AND sources LIKE '[%' AND first_at LIKE '____-__-__T%'
    AND last_at LIKE '____-__-__T%')
UNION ALL SELECT 'reflection' AS "table", CAST(cycle AS TEXT) AS "row" FROM reflection WHERE NOT (
    json_valid(sources) AND sources LIKE '[%' AND json_valid(assessed) AND assessed LIKE '[%'
    AND json_valid(added) AND added LIKE '[%' AND json_valid(reaffirmed) AND reaffirmed LIKE '[%'
    AND json_valid(expired) AND expired LIKE '[%'
    AND json_valid(directives) AND directives LIKE '[%'
    AND json_valid(evidence) AND evidence LIKE '[%' AND at LIKE '____-__-__T%')
UNION ALL SELECT 'tuning' AS "table", trigger AS "row" FROM tuning WHERE NOT (
    json_valid(useful) AND useful LIKE '[%')
UNION ALL SELECT 'code' AS "table", kind || '/' || person AS "row" FROM code WHERE NOT (
    (payload = '' OR json_valid(payload)) AND asked_at LIKE '____-__-__T%')
UNION ALL SELECT 'tool_call' AS "table", id AS "row" FROM tool_call WHERE NOT (
    json_valid(args) AND args LIKE '{%' AND json_valid(approvers) AND approvers LIKE '[%' AND asked_at LIKE '____-__-__T%')
UNION ALL SELECT 'tool_pin' AS "table", server || '/' || tool AS "row" FROM tool_pin WHERE NOT (
    json_valid(schema) AND schema LIKE '{%')
UNION ALL SELECT 'psyche_state' AS "table", CAST(id AS TEXT) AS "row" FROM psyche_state WHERE NOT (
    json_valid(numbers) AND numbers LIKE '{%' AND json_valid(drift) AND drift LIKE '{%')
UNION ALL SELECT 'psyche_edge' AS "table", person AS "row" FROM psyche_edge WHERE NOT (
    json_valid(edge) AND edge LIKE '{%')
UNION ALL SELECT 'psyche_arc' AS "table", arc AS "row" FROM psyche_arc WHERE NOT (
    json_valid(body) AND body LIKE '{%')
UNION ALL SELECT 'fact' AS "table", CAST(id AS TEXT) AS "row" FROM fact WHERE NOT (
    coalesce(ended_at, '____-__-__T') LIKE '____-__-__T%' AND coalesce(since, '____-__-__') LIKE '____-__-__'
    AND coalesce(until, '____-__-__') LIKE '____-__-__')
UNION ALL SELECT 'matter' AS "table", CAST(id AS TEXT) AS "row" FROM matter WHERE NOT (
    opened_at LIKE '____-__-__T%' AND coalesce(due, '____-__-__') LIKE '____-__-__')
UNION ALL SELECT 'psyche_trace' AS "table", CAST(id AS TEXT) AS "row" FROM psyche_trace WHERE NOT (
    json_valid(inputs) AND inputs LIKE '{%')
    OR moved IS NULL AND NOT (json_valid(after) AND after LIKE '{%'
    AND json_valid(edges) AND edges LIKE '[%'
    AND json_valid(coalesce(arcs, '[]')) AND coalesce(arcs, '[]') LIKE '[%')
UNION ALL SELECT 'unsaid' AS "table", CAST(n AS TEXT) AS "row" FROM unsaid WHERE NOT (
    json_valid(change) AND change LIKE '{%')
UNION ALL SELECT 'psyche_kernel' AS "table", kernel AS "row" FROM psyche_kernel WHERE NOT (
    json_valid(traits) AND traits LIKE '[%')
UNION ALL SELECT 'whisper' AS "table", CAST(id AS TEXT) AS "row" FROM whisper WHERE NOT (
    json_valid(sources) AND sources LIKE '[%' AND at LIKE '____-__-__T%'
    AND expires_at LIKE '____-__-__T%')
UNION ALL SELECT 'soul_state' AS "table", CAST(id AS TEXT) AS "row" FROM soul_state WHERE NOT (
    updated_at LIKE '____-__-__T%')
UNION ALL SELECT 'peer' AS "table", peer_id AS "row" FROM peer WHERE NOT (
    first_at LIKE '____-__-__T%' AND last_at LIKE '____-__-__T%' AND first_in_at LIKE '____-__-__T%'
    AND last_in_at LIKE '____-__-__T%' AND last_day LIKE '____-__-__')
UNION ALL SELECT 'peer_tally' AS "table", peer_id || '/' || audience AS "row" FROM peer_tally WHERE NOT (
    first_at LIKE '____-__-__T%' AND last_at LIKE '____-__-__T%'
    AND first_in_at LIKE '____-__-__T%' AND last_in_at LIKE '____-__-__T%'
    AND last_day LIKE '____-__-__')
UNION ALL SELECT 'interaction' AS "table", CAST(id AS TEXT) AS "row" FROM interaction WHERE NOT (
    at LIKE '____-__-__T%')
UNION ALL SELECT 'job' AS "table", job AS "row" FROM job WHERE NOT (
    next_due LIKE '____-__-__T%')
LIMIT :most;

-- name: rows_packed
-- scans: doctor reads everything once
SELECT 'turn_record' AS "table", CAST(id AS TEXT) AS "row", kept FROM turn_record WHERE kept IS NOT NULL
UNION ALL SELECT 'psyche_trace', CAST(id AS TEXT), moved FROM psyche_trace WHERE moved IS NOT NULL;

-- name: whispers_shown
-- scans: the newest of each daimon, for a command
SELECT daimon, max(at) AS last_whisper_at, count(*) AS whispers FROM whisper GROUP BY daimon;

-- name: daimons_shown
-- scans: one row per daimon
SELECT daimon, asked_at, failures, rests_until, reason, mode FROM daimon ORDER BY daimon;

-- name: what_changed
-- scans: small tables, and only when something wrote; the audit log is left out, because looking writes it
-- What the console shows has changed if any of these has.
SELECT (SELECT max(seq) FROM inbox) AS heard, (SELECT count(*) FROM inbox WHERE state <> 'settled') AS waiting,
    (SELECT sum(turns) FROM conversation) AS turns, (SELECT max(id) FROM revision) AS revision,
    (SELECT max(id) FROM soul_state) AS state, (SELECT max(id) FROM assessment) AS assessment,
    (SELECT group_concat(key || state || created_at) FROM belief) AS beliefs, (SELECT max(cycle) FROM reflection) AS cycle,
    (SELECT count(*) FROM due) AS plans, (SELECT max(id) FROM whisper) AS whisper,
    (SELECT group_concat(daimon || coalesce(mode, '')) FROM daimon) AS modes, (SELECT count(*) FROM person_link) AS links,
    (SELECT count(*) FROM person) AS people, (SELECT max(ended_at) FROM job) AS job;
