-- `store.moments`: what was said, found by its words; what people said of themselves; lines of conversation.

-- name: moment_audiences
-- How many moments each of :audiences holds, by its number; one JSON object, because hundreds of rows cost twice as much.
SELECT json_group_object(a.number, a.kept) AS kept FROM json_each(:audiences) q CROSS JOIN moment_audience a WHERE a.audience = q.value;

-- name: moment_audiences_all
-- scans: one row an audience, where everything may be shown
SELECT json_group_object(number, kept) AS kept FROM moment_audience;

-- name: moment_stems
-- How many moments hold each of :terms, a JSON array of stems with the number of an audience.
SELECT s.term, s.doc FROM json_each(:terms) q CROSS JOIN moment_stem s WHERE s.term = q.value;

-- name: moment_stems_all
-- scans: the stems searched for, a row an audience
-- A semicolon comes next after the colon.
SELECT s.term, s.doc FROM json_each(:stems) q
CROSS JOIN moment_stem s WHERE s.term >= q.value || ':' AND s.term < q.value || ';';

-- name: moment_stems_begin
-- scans: the stems that begin like one that is nowhere
SELECT s.term, s.doc FROM json_each(:begins) q
CROSS JOIN moment_stem s WHERE s.term >= q.value AND s.term < q.value || char(1114111);

-- name: moment_places
-- scans: the postings of the terms searched for, a bounded number
SELECT q.value AS term,
    (SELECT group_concat(i.rowid) FROM moment_index i WHERE i.moment_index MATCH '"' || q.value || '"') AS ids
FROM json_each(:terms) q;

-- name: moment_places_all
-- scans: the postings of the stems searched for, in every audience
SELECT p.term, group_concat(CAST(p.doc AS TEXT), ',') AS ids FROM json_each(:stems) q
CROSS JOIN moment_place p WHERE p.term >= q.value || ':' AND p.term < q.value || ';' GROUP BY p.term;

-- name: moments_around
-- scans: the moments asked for, a bounded number
-- Moments by their ids, a JSON array, and what is next to them: what was said before each, and by a person after it.
WITH asked AS (
    SELECT m.id,
        (SELECT max(b.id) FROM moment b WHERE b.conversation = m.conversation AND b.id < m.id) AS before_id,
        (SELECT min(a.id) FROM moment a WHERE a.conversation = m.conversation AND a.id > m.id AND a.is_own = 0) AS after_id
    FROM json_each(:ids) q CROSS JOIN moment m WHERE m.id = CAST(q.value AS BIGINT))
SELECT m.id, m.turn, m.at_s, m.person, m.name, m.conversation, m.audience, m.text, m.importance, m.is_own,
    1 AS is_asked, q.before_id, q.after_id
FROM asked q CROSS JOIN moment_said m WHERE m.id = q.id
UNION ALL
SELECT m.id, m.turn, m.at_s, m.person, m.name, m.conversation, m.audience, m.text, m.importance, m.is_own, 0, 0, 0
FROM (SELECT before_id AS id FROM asked UNION SELECT after_id FROM asked EXCEPT SELECT id FROM asked) q
CROSS JOIN moment_said m WHERE m.id = q.id;

-- name: moment_keep
INSERT INTO moment (turn, position, at_s, person, name, conversation, audience, text, pictures, importance, is_own)
VALUES (:turn, :position, :at_s, :person, :name, :conversation, :audience, :text, :pictures, :importance, :is_own);

-- name: moment_put
UPDATE moment SET text = :text WHERE id = :id;

-- name: moment_at
SELECT id, person, text FROM moment
WHERE conversation = :conversation AND turn = :turn AND position IN ('', :position) AND is_own = 0 ORDER BY id DESC LIMIT 1;

-- name: moments_of_audience
SELECT kept FROM moment_audience WHERE audience = :audience;

-- name: moments_weighed
-- scans: once every few hundred moments, to delete the least important
SELECT id, importance, at_s FROM moment
WHERE audience = :audience AND turn NOT IN (SELECT turn FROM fact WHERE ended_at IS NULL AND hidden_at IS NULL);

-- name: moment_let_go
DELETE FROM moment WHERE id = :id;

-- name: vectors_held
-- scans: the index of the vectors of the audiences that may be shown, without the vectors
-- `:known` is a JSON object: by audience, the number up to which to count.
SELECT q.key AS audience,
    (SELECT count(*) FROM moment_vector v WHERE v.audience = q.key AND v.embedder = :embedder AND v.number <= CAST(q.value AS BIGINT)) AS known,
    (SELECT max(v.number) FROM moment_vector v WHERE v.audience = q.key AND v.embedder = :embedder) AS last
FROM json_each(:known) q;

-- name: vector_audiences
-- scans: one row an audience, where everything may be shown
SELECT audience FROM moment_audience;

-- name: vector_numbers
-- All of an audience, after some of them went.
SELECT number FROM moment_vector WHERE audience = :audience AND embedder = :embedder AND number <= :last;

-- name: vectors
SELECT number, moment, vector FROM moment_vector
WHERE audience = :audience AND embedder = :embedder AND number > :after ORDER BY number LIMIT :most;

-- name: vectors_missing
-- Moments after the last one that was read, and those whose words changed.
SELECT id, text, pictures FROM (
    SELECT m.id, m.text, m.pictures FROM moment_vector v CROSS JOIN moment m
    WHERE m.id = v.moment AND v.embedder = '' LIMIT :most
) UNION ALL SELECT id, text, pictures FROM (
    SELECT id, text, pictures FROM moment
    WHERE id > (SELECT coalesce(max(moment), 0) FROM moment_vector) AND is_own = 0 ORDER BY id LIMIT :most
);

-- name: vector_keep
-- A moment that was deleted gets none. If its words have changed since they were read, this marks it to be read again.
INSERT OR REPLACE INTO moment_vector (moment, audience, embedder, vector)
SELECT id, audience, CASE is_same WHEN 1 THEN :embedder ELSE '' END, CASE is_same WHEN 1 THEN :vector ELSE x'' END
FROM (SELECT id, audience, text = :text AND pictures = :pictures AS is_same FROM moment WHERE id = :id AND is_own = 0);

-- name: vectors_void
-- scans: the index of all vectors, a few times a start
DELETE FROM moment_vector WHERE number IN (
    SELECT number FROM moment_vector WHERE embedder NOT IN (:embedder, '') LIMIT :most
);

-- name: vectors_counted
-- scans: the index of all vectors, for `status`; and the moments that have none yet
SELECT count(*) AS done, count(*) FILTER (WHERE embedder = '') AS changed,
    (SELECT count(*) FROM moment WHERE id > (SELECT coalesce(max(moment), 0) FROM moment_vector) AND is_own = 0) AS missing
FROM moment_vector;
