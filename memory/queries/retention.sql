-- Expired data is deleted a few rows at a time, while the soul is idle.

-- name: checkpoint
SELECT records_at, trace, numbers FROM checkpoint WHERE id = 1;

-- name: records_old
SELECT t.turn, t.record, t.at, t.conversation, t.number, r.kept, r.snapshot
FROM turn t JOIN turn_record r ON r.id = t.record AND r.expired_at IS NULL
WHERE t.at >= :since AND t.at < :before ORDER BY t.at LIMIT :most;

-- name: records_after
SELECT r.kept, r.snapshot FROM turn t JOIN turn_record r ON r.id = t.record
WHERE t.conversation = :conversation AND t.number > :number ORDER BY t.number;

-- name: blob_expired
DELETE FROM blob WHERE sha256 = :sha256;

-- name: record_expired
UPDATE turn_record SET expired_at = :now, kept = NULL, snapshot = x'', attention = '', changes = '', thoughts = '',
    flags = '[]', steps = '', prompt_sha256 = '' WHERE id = :id;

-- name: responses_expired
UPDATE step SET response = '', request_sha256 = '' WHERE turn = :turn;

-- name: records_expired_to
INSERT INTO checkpoint (id, records_at) VALUES (1, :at) ON CONFLICT (id) DO UPDATE SET records_at = excluded.records_at;

-- name: traces_old
SELECT t.id, t.turn, t.person, t.inputs, t.after, t.moved, k.traits FROM psyche_trace t
JOIN psyche_kernel k ON k.kernel = t.kernel WHERE t.id > :trace AND t.at < :before ORDER BY t.id LIMIT :most;

-- name: checkpoint_edges
SELECT edge FROM checkpoint_edge WHERE person IN (SELECT value FROM json_each(:persons));

-- name: checkpoint_edges_shown
-- scans: only a test, which folds from there
SELECT edge FROM checkpoint_edge ORDER BY person;

-- name: traces_gone
DELETE FROM psyche_trace WHERE id <= :trace;

-- name: checkpoint_moved
INSERT INTO checkpoint (id, trace, numbers) VALUES (1, :trace, :numbers)
ON CONFLICT (id) DO UPDATE SET trace = excluded.trace, numbers = excluded.numbers WHERE trace < excluded.trace;

-- name: checkpoint_edge_moved
INSERT INTO checkpoint_edge (person, edge) VALUES (:person, :edge)
ON CONFLICT (person) DO UPDATE SET edge = excluded.edge;
