-- `store.psyche`: read once in a turn, written once in its commit; old traces are folded into a checkpoint.

-- name: psyche_recalled
-- scans: subjects and intentions, twelve rows of each at most
SELECT s.version, s.numbers, s.drift,
    (SELECT '[' || group_concat(e.edge) || ']' FROM json_each(:persons) p CROSS JOIN psyche_edge e ON e.person = p.value) AS edges,
    (SELECT '[' || group_concat(body) || ']' FROM psyche_arc) AS arcs,
    (SELECT '[' || group_concat(body) || ']' FROM psyche_intention) AS intentions,
    (SELECT json_group_array(json_object('id', f.id, 'person', f.person, 'key', f.key, 'value', f.value,
        'sources', CASE WHEN json_valid(f.sources) THEN json(f.sources) END, 'turn', f.turn, 'stated_s', f.stated_s, 'is_single', json(CASE f.is_single WHEN 1 THEN 'true' ELSE 'false' END)))
        FROM json_each(:persons) p CROSS JOIN psyche_fact f ON f.person = p.value AND f.newest = 1) AS facts,
    EXISTS (SELECT 1 FROM psyche_episode) AS has_episodes
FROM (SELECT 1) LEFT JOIN psyche_state s ON s.id = 1;

-- name: psyche_absent
-- scans: a row for each person whom the soul knows, four times a day
SELECT edge FROM psyche_edge WHERE last_at > :since AND last_at <= :until ORDER BY last_at DESC LIMIT :most;

-- name: psyche_moved
INSERT INTO psyche_state (id, version, numbers, kernel) VALUES (1, 1, :numbers, :kernel)
ON CONFLICT (id) DO UPDATE SET version = version + 1, numbers = excluded.numbers, kernel = excluded.kernel;

-- name: psyche_drifted
UPDATE psyche_state SET drift = :drift WHERE id = 1;

-- name: psyche_stances
SELECT json_extract(t.inputs, '$.at_s') AS at_s, json_extract(s.value, '$[1]') AS stance
FROM psyche_trace t CROSS JOIN json_each(CASE WHEN json_valid(t.inputs) THEN t.inputs ELSE '{}' END, '$.shifts') s
WHERE t.at > :since ORDER BY t.at;

-- name: psyche_kernel_known
INSERT OR IGNORE INTO psyche_kernel (kernel, traits, first_at) VALUES (:kernel, :traits, :at);

-- name: psyche_edge_moved
INSERT INTO psyche_edge (person, edge, last_at) VALUES (:person, :edge, :at)
ON CONFLICT (person) DO UPDATE SET edge = excluded.edge, last_at = excluded.last_at;

-- name: psyche_traced
-- `inputs` holds only the stances, for `psyche_stances`; `arcs` is empty if the trace holds some.
INSERT INTO psyche_trace (turn, at, person, kernel, inputs, after, edges, arcs, moved)
VALUES (:turn, :at, :person, :kernel, :stances, '', '', :arcs, :moved);

-- name: psyche_arcs_gone
DELETE FROM psyche_arc WHERE arc NOT IN (SELECT value FROM json_each(:arcs)); -- scans: twelve rows at most

-- name: psyche_arc_kept
INSERT INTO psyche_arc (arc, body) VALUES (:arc, :body) ON CONFLICT (arc) DO UPDATE SET body = excluded.body;

-- name: psyche_intentions_gone
DELETE FROM psyche_intention WHERE intention NOT IN (SELECT value FROM json_each(:intentions)); -- scans: twelve rows at most

-- name: psyche_intention_kept
INSERT INTO psyche_intention (intention, body) VALUES (:intention, :body)
ON CONFLICT (intention) DO UPDATE SET body = excluded.body;

-- name: psyche_fact_superseded
-- A person has one name per place; a liking is superseded only by the same liking.
UPDATE psyche_fact SET newest = 0
WHERE person = :person AND key = :key AND newest = 1 AND sources = :sources AND (:is_single OR value = :value);

-- name: psyche_fact_kept
INSERT INTO psyche_fact (person, key, value, sources, turn, stated_s, is_single, newest)
VALUES (:person, :key, :value, :sources, :turn, :stated_s, :is_single, 1);

-- name: psyche_episode_kept
INSERT INTO psyche_episode
    (turn, at_s, person, name, conversation, text, previous, stems, previous_stems, importance, sources, is_own)
VALUES
    (:turn, :at_s, :person, :name, :conversation, :text, :previous, :stems, :previous_stems, :importance, :sources, :is_own);

-- name: psyche_episode_refreshed
UPDATE psyche_episode SET importance = importance + (1.0 - importance) * :share WHERE turn = :turn;

-- name: psyche_episode_span
SELECT (SELECT min(id) FROM psyche_episode) AS first, (SELECT max(id) FROM psyche_episode) AS last;

-- name: psyche_episodes_weighed
-- scans: once every few hundred episodes, to delete the least important
SELECT id, importance, at_s FROM psyche_episode;

-- name: psyche_episode_gone
DELETE FROM psyche_episode WHERE id = :id;

-- name: checkpoint
SELECT records_at, trace, numbers FROM checkpoint WHERE id = 1;

-- name: traces_old
SELECT t.id, t.turn, t.person, t.inputs, t.after, t.moved, k.traits FROM psyche_trace t
JOIN psyche_kernel k ON k.kernel = t.kernel WHERE t.id > :trace AND t.at < :before ORDER BY t.id LIMIT :most;

-- name: checkpoint_edges
SELECT edge FROM checkpoint_edge WHERE person IN (SELECT value FROM json_each(:persons));

-- name: traces_gone
DELETE FROM psyche_trace WHERE id <= :trace;

-- name: checkpoint_moved
INSERT INTO checkpoint (id, trace, numbers) VALUES (1, :trace, :numbers)
ON CONFLICT (id) DO UPDATE SET trace = excluded.trace, numbers = excluded.numbers WHERE trace < excluded.trace;

-- name: checkpoint_edge_moved
INSERT INTO checkpoint_edge (person, edge) VALUES (:person, :edge)
ON CONFLICT (person) DO UPDATE SET edge = excluded.edge;
