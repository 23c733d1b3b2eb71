-- `store.documents`: portraits and the soul's state, version by version, and what git does not hold yet.

-- name: unarchived
SELECT r.id, r.document, r.at, r.author, r.note, r.turn, m.person, m.audience, m.version, m.markdown,
    coalesce(p.name, '') AS name
FROM revision r LEFT JOIN user_model m ON m.revision = r.id LEFT JOIN person p ON p.person = m.person
WHERE r.git_commit IS NULL ORDER BY r.id LIMIT :most;

-- name: state_as_of
SELECT key, audience, value, updated_at FROM soul_state s
WHERE revision <= :revision AND id = (
    SELECT max(id) FROM soul_state t WHERE t.key = s.key AND t.audience = s.audience AND t.revision <= :revision)
ORDER BY key, audience;

-- name: state_revision
SELECT max(revision) AS revision FROM soul_state;

-- name: model_written
-- Whether a portrait ever had this text; unless :ever, in a version that git does not hold yet or that is in force.
SELECT 1 FROM user_model m JOIN revision r ON r.id = m.revision
WHERE m.person = :person AND m.audience = :audience AND m.markdown = :text
  AND (:ever = 1 OR m.newest = 1 OR r.git_commit IS NULL) LIMIT 1;

-- name: state_changes
-- scans: only if a state file differs from what the archive wrote
SELECT s.revision, s.updated_at, s.value, r.git_commit IS NULL AS is_pending FROM soul_state s JOIN revision r ON r.id = s.revision
ORDER BY s.revision;

-- name: archived
UPDATE revision SET git_commit = :git_commit WHERE id = :id AND git_commit IS NULL;

-- name: archive_files
-- scans: only the archive worker, occasionally
SELECT f.path, f.person, f.audience, f.sha256, f.person <> '' AND m.version IS NULL AS is_gone FROM archive_file f
LEFT JOIN user_model m ON m.person = f.person AND m.audience = f.audience AND m.newest = 1 ORDER BY f.path;

-- name: archive_files_of
SELECT f.path, f.person, f.audience, f.sha256, f.person <> '' AND m.version IS NULL AS is_gone FROM archive_file f
LEFT JOIN user_model m ON m.person = f.person AND m.audience = f.audience AND m.newest = 1
WHERE f.person = :person ORDER BY f.path;

-- name: archive_file_drop
DELETE FROM archive_file WHERE person = :person AND audience = :audience;

-- name: archive_file_put
INSERT INTO archive_file (path, person, audience, sha256) VALUES (:path, :person, :audience, :sha256);

-- name: history_moved
-- Something goes that git may hold, so its history is to be written anew.
INSERT INTO checkpoint (id, history) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET history = checkpoint.history + 1;

-- name: history_now
SELECT history FROM checkpoint WHERE id = 1;

-- name: archive_forget
-- scans: only when the archive is rebuilt
UPDATE revision SET git_commit = NULL WHERE git_commit IS NOT NULL;

-- name: archive_files_forget
DELETE FROM archive_file;

-- name: models_known
-- scans: only when the archive begins
SELECT person, audience FROM user_model WHERE newest = 1;

-- name: archived_commits
-- scans: only when the archive begins
SELECT id, git_commit FROM revision WHERE git_commit IS NOT NULL;

-- name: commit_of
SELECT git_commit FROM revision WHERE id = :id;

-- name: last_commit
-- scans: only past what git lacks
SELECT git_commit FROM revision WHERE git_commit IS NOT NULL ORDER BY id DESC LIMIT 1;

-- name: revision_new
INSERT INTO revision (document, at, author, note, turn) VALUES (:document, :at, :author, :note, :turn) RETURNING id;

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
