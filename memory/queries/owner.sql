-- The owner's hand, and what git does not hold yet.

-- name: person_known
SELECT 1 FROM person WHERE person = :person UNION ALL SELECT 1 FROM user_model WHERE person = :person AND newest = 1 LIMIT 1;

-- name: link_new
INSERT INTO person_link (person, canonical) VALUES (:person, :canonical);

-- name: link_moved
UPDATE person_link SET canonical = :canonical WHERE canonical = :other;

-- name: audiences_relinked
UPDATE audience SET revision = revision + 1
WHERE audience IN (SELECT audience FROM audience_member WHERE person = :person);

-- name: model_adopt
UPDATE user_model SET person = :canonical WHERE person = :other AND audience = :audience;

-- name: models_own
SELECT DISTINCT audience FROM user_model WHERE person = :person ORDER BY audience;

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
SELECT max(revision) FROM soul_state;

-- name: model_written
-- whether a portrait ever had this text; unless :ever, in a version that git does not hold yet or that is in force
SELECT 1 FROM user_model m JOIN revision r ON r.id = m.revision
WHERE m.person = :person AND m.audience = :audience AND m.markdown = :text
  AND (:ever OR m.newest = 1 OR r.git_commit IS NULL) LIMIT 1;

-- name: state_changes
-- scans: only where a state file is not as the archive left it
SELECT s.revision, s.updated_at, s.value, r.git_commit IS NULL FROM soul_state s JOIN revision r ON r.id = s.revision
ORDER BY s.revision;

-- name: archived
UPDATE revision SET git_commit = :git_commit WHERE id = :id AND git_commit IS NULL;

-- name: archive_files
-- scans: the archive worker alone, now and then
SELECT f.path, f.person, f.audience, f.sha256, f.person <> '' AND m.version IS NULL AS is_gone FROM archive_file f
LEFT JOIN user_model m ON m.person = f.person AND m.audience = f.audience AND m.newest = 1 ORDER BY f.path;

-- name: archive_files_of
SELECT f.path, f.person, f.audience, f.sha256, f.person <> '' AND m.version IS NULL AS is_gone FROM archive_file f
LEFT JOIN user_model m ON m.person = f.person AND m.audience = f.audience AND m.newest = 1
WHERE f.person = :person ORDER BY f.path;

-- name: archive_file_drop
DELETE FROM archive_file WHERE person = :person AND audience = :audience;

-- name: archive_file_adopt
UPDATE archive_file SET person = :canonical WHERE person = :other AND audience = :audience;

-- name: archive_file_put
INSERT INTO archive_file (path, person, audience, sha256) VALUES (:path, :person, :audience, :sha256);

-- name: archive_forget
-- scans: only where the archive is built anew
UPDATE revision SET git_commit = NULL WHERE git_commit IS NOT NULL;

-- name: archive_files_forget
DELETE FROM archive_file;

-- name: model_instant
SELECT r.at FROM user_model m JOIN revision r ON r.id = m.revision
WHERE m.person = :person AND m.audience = :audience AND m.newest = 1;
