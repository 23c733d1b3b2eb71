-- Queries of ../queries that PostgreSQL needs in other words; the names, the parameters and the columns are the same.

-- name: moments_said
SELECT turn, conversation, audience, to_char(to_timestamp(at_s) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS at,
    is_own, text
FROM moment_said WHERE person IN (SELECT value FROM json_each(:ids)) ORDER BY id;

-- name: moment_index_merge
-- Nothing is left in the index of what was deleted.
SELECT :pages AS pages WHERE false;

-- name: moment_stems
SELECT found.term, found.doc FROM json_each(:terms) q CROSS JOIN LATERAL
    (SELECT i.stem AS term, count(*) AS doc FROM moment_index i WHERE i.stem = q.value GROUP BY i.stem) found;

-- name: moment_places
SELECT q.value AS term, (SELECT string_agg(CAST(i.moment AS TEXT), ',') FROM moment_index i WHERE i.stem = q.value) AS ids
FROM json_each(:terms) q;

-- name: moment_places_all
SELECT i.stem AS term, string_agg(CAST(i.moment AS TEXT), ',') AS ids FROM json_each(:stems) q
JOIN moment_index i ON i.stem >= q.value || ':' AND i.stem < q.value || ';' GROUP BY i.stem;

-- name: moment_stems_all
SELECT i.stem AS term, count(*) AS doc FROM json_each(:stems) q
JOIN moment_index i ON i.stem >= q.value || ':' AND i.stem < q.value || ';' GROUP BY i.stem;

-- name: moment_stems_begin
SELECT i.stem AS term, count(*) AS doc FROM json_each(:begins) q
JOIN moment_index i ON i.stem >= q.value AND i.stem < q.value || chr(1114111) GROUP BY i.stem;

-- name: people
SELECT p.person, p.name, p.is_bot, l.canonical,
    (SELECT coalesce('[' || string_agg(to_json(m.audience)::text, ',' ORDER BY m.audience) || ']', '[]')
        FROM (SELECT DISTINCT audience FROM user_model WHERE user_model.person = p.person) m) AS audiences,
    (SELECT count(*) FROM user_model m WHERE m.person = p.person) AS versions,
    (SELECT max(r.at) FROM user_model m JOIN revision r ON r.id = m.revision WHERE m.person = p.person) AS updated_at
FROM (SELECT person, name, is_bot FROM person
      UNION ALL SELECT DISTINCT person, '', 0 FROM user_model WHERE person NOT IN (SELECT person FROM person)) p
LEFT JOIN person_link l ON l.person = p.person ORDER BY p.person;

-- name: plan_new
INSERT INTO due (id, kind, scheduled_for, conversation, key, process, params, text, audience, person, asked_by, in_answer,
    made_as)
SELECT :id, :kind, :at, :conversation, :key, :process, :params, :text, :audience, :person, :asked_by, :in_answer, :made_as
WHERE NOT EXISTS (SELECT 1 FROM due d WHERE (d.id = :id OR (d.kind = :kind AND d.scheduled_for = :at))
    AND NOT (d.conversation = :conversation AND d.key = :key))
ON CONFLICT (conversation, key) DO UPDATE SET kind = excluded.kind, scheduled_for = excluded.scheduled_for,
    process = excluded.process, params = excluded.params, text = excluded.text, audience = excluded.audience,
    person = excluded.person, asked_by = excluded.asked_by, in_answer = excluded.in_answer,
    made_as = excluded.made_as, fired_turn = NULL, lapsed_at = NULL, state = 'waiting', why = ''
WHERE due.fired_turn IS NOT NULL;

-- name: psyche_recalled
SELECT s.version, s.numbers, s.kernel, s.drift,
    (SELECT '[' || string_agg(e.edge, ',' ORDER BY p.key::int) || ']' FROM json_each(:persons) p
        JOIN psyche_edge e ON e.person = p.value) AS edges,
    (SELECT '[' || string_agg(body, ',' ORDER BY arc) || ']' FROM psyche_arc) AS arcs,
    (SELECT json_agg(json_build_object('person', person, 'kind', kind, 'strength', strength, 'at_s', at_s, 'audience', audience))::text FROM (
        SELECT a.person, a.kind, a.strength, a.at_s, a.audience FROM json_each(:persons) p JOIN appraisal a ON a.person = p.value
        ORDER BY a.id DESC LIMIT 20) AS newest) AS appraisals
FROM (SELECT 1) AS one LEFT JOIN psyche_state s ON s.id = 1;

-- name: known_here
-- A document of the facts of each of `:persons`, with rows as `facts_of` has them, and what is open in the life of one.
SELECT 'facts' AS what, 0 AS id, 0 AS short, '' AS person, '' AS audience, (SELECT json_agg(json_build_object(
        'id', f.id, 'short', f.short, 'person', f.person, 'audience', f.audience, 'kind', f.kind, 'text', f.text,
        'keys', f.keys, 'about', f.about, 'since', f.since, 'until', f.until, 'turn', f.turn, 'stated_s', f.stated_s,
        'ended_at', f.ended_at, 'why', f.why, 'unchecked', f.unchecked))::text
    FROM fact f WHERE f.person = p.value AND f.hidden_at IS NULL) AS text, NULL AS due, NULL AS opened_at
FROM json_each(:persons) p WHERE EXISTS (SELECT 1 FROM fact f WHERE f.person = p.value AND f.hidden_at IS NULL)
UNION ALL
SELECT 'matter', id, short, person, audience, text, due, opened_at
FROM matter WHERE person = :addressee AND closed_at IS NULL AND hidden_at IS NULL;

-- name: turns_span
SELECT (SELECT coalesce(sum(turns), 0) FROM conversation) AS turns,
    extract(epoch FROM (SELECT max(at) FROM turn)::timestamptz - (SELECT min(at) FROM turn)::timestamptz)::float8 / 86400 AS days;

-- name: inbox_void_leases
-- What another worker holds the lane of is not void.
UPDATE inbox SET state = 'pending' WHERE state <> 'settled' AND state = 'taken' AND coalesce(boot, '') <> :boot
  AND NOT EXISTS (SELECT 1 FROM lane WHERE lane.conversation = inbox.conversation AND lane.lease_until > clock_timestamp());

-- name: outbox_void_leases
UPDATE outbox SET state = 'unknown_after_send' WHERE state = 'taken' AND coalesce(boot, '') <> :boot
  AND NOT EXISTS (SELECT 1 FROM lane WHERE lane.conversation = outbox.conversation AND lane.lease_until > clock_timestamp());

-- name: oldest
-- Nothing is thought while the history of its network is being read: an earlier message may be there; nor while the soul is paused.
SELECT seq, payload, state, attempts, boots, not_before, heard_at, inputs, owes, held, turn, stopped,
    boot = :boot AS here FROM inbox
WHERE conversation = :conversation AND (state = 'pending' OR state = 'taken' OR state = 'thought')
  AND (split_part(:conversation, ':', 4) LIKE '!%' OR NOT EXISTS (
    SELECT 1 FROM unread WHERE network IN (split_part(:conversation, ':', 1), CASE WHEN :conversation LIKE 'terminal:%' THEN '' ELSE '*' END)
      AND until > clock_timestamp()))
ORDER BY position, seq LIMIT 1;

-- name: vector_keep
INSERT INTO moment_vector (number, moment, audience, embedder, vector)
SELECT nextval(pg_get_serial_sequence('moment_vector', 'number')), id, audience, CASE WHEN is_same THEN :embedder ELSE '' END,
    CASE WHEN is_same THEN :vector ELSE '\x'::bytea END
FROM (SELECT id, audience, text = :text AND pictures = :pictures AS is_same FROM moment WHERE id = :id AND is_own = 0) AS m
ON CONFLICT (moment) DO UPDATE SET number = excluded.number, audience = excluded.audience, embedder = excluded.embedder,
    vector = excluded.vector;

-- name: vectors_missing
SELECT id, text, pictures FROM (
    SELECT m.id, m.text, m.pictures FROM moment_vector v JOIN moment m ON m.id = v.moment WHERE v.embedder = '' LIMIT :most
) AS changed UNION ALL SELECT id, text, pictures FROM (
    SELECT id, text, pictures FROM moment
    WHERE id > (SELECT coalesce(max(moment), 0) FROM moment_vector) AND is_own = 0 ORDER BY id LIMIT :most
) AS unread;

-- name: spent_since
-- What is under way counts as spent.
SELECT coalesce(sum(cost_usd), 0.0) + booked(NULL, NULL) AS cost_usd FROM step WHERE at >= :since;

-- name: spent_since_on
SELECT coalesce(sum(cost_usd), 0.0) + booked(ARRAY(SELECT value FROM json_each(:ids)), NULL) AS cost_usd FROM step
WHERE at >= :since AND person IN (SELECT value FROM json_each(:ids));

-- name: spent_since_in
SELECT coalesce(sum(cost_usd), 0.0) + booked(NULL, :channel) AS cost_usd FROM step
WHERE at >= :since AND conversation >= :channel || ':' AND conversation < :channel || ';';

-- name: moment_audiences
SELECT coalesce(json_object_agg(a.number, a.kept), '{}')::text AS kept FROM json_each(:audiences) q
CROSS JOIN moment_audience a WHERE a.audience = q.value;

-- name: moment_audiences_all
SELECT coalesce(json_object_agg(number, kept), '{}')::text AS kept FROM moment_audience;

-- name: audiences_of_one
SELECT coalesce(json_agg(audience), '[]')::text AS audiences FROM audience_member WHERE person IN (SELECT value FROM json_each(:ids));

-- name: audiences_of_all
SELECT coalesce(json_agg(a.audience), '[]')::text AS audiences FROM audience_member m JOIN audience a ON a.audience = m.audience
WHERE m.person IN (SELECT value FROM json_each(:ids)) AND a.known_at IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM json_each(:present) p
    WHERE NOT EXISTS (SELECT 1 FROM audience_member n WHERE n.audience = a.audience AND n.person = p.value)
      AND NOT EXISTS (SELECT 1 FROM person_link l JOIN audience_member n ON n.person = l.person
                      WHERE l.canonical = p.value AND n.audience = a.audience));

-- name: soul_texts
SELECT content AS text FROM blob WHERE substr(content, 1, 9) = convert_to('{"files":', 'UTF8');

-- name: blobs_kept
SELECT sha256, content FROM blob
WHERE substr(content, 1, 8) = convert_to('{"turn":', 'UTF8') OR substr(content, 1, 16) = convert_to('{"conversation":', 'UTF8');
