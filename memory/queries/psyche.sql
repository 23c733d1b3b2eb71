-- `store.psyche`: read once in a turn, written once in its commit.

-- name: psyche_recalled
-- scans: subjects, twelve rows at most
SELECT s.version, s.numbers, s.kernel, s.drift,
    (SELECT '[' || group_concat(e.edge) || ']' FROM json_each(:persons) p CROSS JOIN psyche_edge e WHERE e.person = p.value) AS edges,
    (SELECT '[' || group_concat(body) || ']' FROM psyche_arc) AS arcs,
    (SELECT json_group_array(json_object('person', person, 'kind', kind, 'strength', strength, 'at_s', at_s, 'audience', audience)) FROM (
        SELECT a.person, a.kind, a.strength, a.at_s, a.audience FROM json_each(:persons) p CROSS JOIN appraisal a
        WHERE a.person = p.value ORDER BY a.id DESC LIMIT 20) AS newest) AS appraisals
FROM (SELECT 1) LEFT JOIN psyche_state s ON s.id = 1;

-- name: psyche_absent
-- scans: a row for each person whom the soul knows, four times a day
SELECT edge FROM psyche_edge WHERE last_at > :since AND last_at <= :until ORDER BY last_at DESC LIMIT :most;

-- name: psyche_moved
INSERT INTO psyche_state (id, version, numbers, kernel) VALUES (1, 1, :numbers, :kernel)
ON CONFLICT (id) DO UPDATE SET version = psyche_state.version + 1, numbers = excluded.numbers, kernel = excluded.kernel;

-- name: psyche_drifted
UPDATE psyche_state SET drift = :drift WHERE id = 1;

-- name: appraised_since
SELECT at_s, kind FROM appraisal WHERE at_s > :since_s ORDER BY at_s;

-- name: psyche_kernel_known
INSERT INTO psyche_kernel (kernel, traits, first_at) VALUES (:kernel, :traits, :at) ON CONFLICT DO NOTHING;

-- name: psyche_edge_moved
INSERT INTO psyche_edge (person, edge, last_at) VALUES (:person, :edge, :at)
ON CONFLICT (person) DO UPDATE SET edge = excluded.edge, last_at = excluded.last_at;

-- name: psyche_traced
-- `arcs` is empty if the trace holds some; all else is in `moved`.
INSERT INTO psyche_trace (turn, at, person, kernel, inputs, after, edges, arcs, moved)
VALUES (:turn, :at, :person, :kernel, '{}', '', '', :arcs, :moved);

-- name: psyche_arcs_gone
DELETE FROM psyche_arc WHERE arc NOT IN (SELECT value FROM json_each(:arcs)); -- scans: twelve rows at most

-- name: psyche_arc_kept
INSERT INTO psyche_arc (arc, body) VALUES (:arc, :body) ON CONFLICT (arc) DO UPDATE SET body = excluded.body;

-- name: checkpoint
SELECT records_at FROM checkpoint WHERE id = 1;

-- name: traces_gone
DELETE FROM psyche_trace WHERE id IN (SELECT id FROM psyche_trace WHERE at < :before ORDER BY at LIMIT :most);

-- name: appraisal_kept
INSERT INTO appraisal (person, kind, strength, at_s, turn, audience)
VALUES (:person, :kind, :strength, :at_s, :turn, :audience);
