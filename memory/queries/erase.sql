-- One person's rows, found and taken away. `:ids` is a JSON list of every id of that person, `:labels` of the labels
-- of what was learned from that person alone; `:turns` of turns, `:places` of conversations.

-- name: private_places
-- scans: an erasure reads everything once
SELECT conversation FROM conversation WHERE audience IN (SELECT value FROM json_each(:labels));

-- name: turns_of
-- scans: an erasure reads everything once
SELECT turn, conversation, number, record FROM turn
WHERE person IN (SELECT value FROM json_each(:ids)) OR audience IN (SELECT value FROM json_each(:labels))
  OR conversation IN (SELECT value FROM json_each(:places))
  OR turn IN (SELECT turn FROM inbox WHERE person IN (SELECT value FROM json_each(:ids)))
  OR (conversation, number) IN (SELECT conversation, number FROM entry WHERE person IN (SELECT value FROM json_each(:ids)));

-- name: others_in_turn
SELECT DISTINCT person FROM entry WHERE conversation = :conversation AND number = :number AND person IS NOT NULL
  AND person NOT IN (SELECT value FROM json_each(:ids));

-- name: texts_of
-- scans: an erasure reads everything once
SELECT content FROM entry WHERE person IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT markdown FROM user_model WHERE person IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT json_extract(payload, '$.text') FROM inbox WHERE person IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT value FROM soul_state WHERE audience IN (SELECT value FROM json_each(:labels));

-- name: texts_of_others
-- scans: an erasure reads everything once
SELECT content FROM entry WHERE person IS NOT NULL AND person NOT IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT content FROM entry WHERE person IS NULL AND (conversation, number) NOT IN (
    SELECT conversation, number FROM turn WHERE turn IN (SELECT value FROM json_each(:turns)))
UNION ALL SELECT markdown FROM user_model WHERE person NOT IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT body FROM outbox WHERE turn NOT IN (SELECT value FROM json_each(:turns));

-- name: interactions_of
-- scans: an erasure reads everything once
SELECT id FROM interaction WHERE peer_id IN (SELECT value FROM json_each(:ids)) OR turn IN (SELECT value FROM json_each(:turns));

-- name: erase_lessons
-- scans: an erasure reads everything once
DELETE FROM lesson WHERE (key, audience) IN (SELECT key, audience FROM belief WHERE EXISTS (
    SELECT 1 FROM json_each(belief.evidence) e WHERE e.value IN (SELECT value FROM json_each(:evidence))));

-- name: erase_beliefs
-- scans: an erasure reads everything once
DELETE FROM belief WHERE EXISTS (
    SELECT 1 FROM json_each(evidence) e WHERE e.value IN (SELECT value FROM json_each(:evidence)));

-- name: erase_reflections
-- scans: an erasure reads everything once
DELETE FROM reflection WHERE EXISTS (
    SELECT 1 FROM json_each(evidence) e WHERE e.value IN (SELECT value FROM json_each(:evidence)));

-- name: erase_interactions
-- scans: an erasure reads everything once
DELETE FROM interaction WHERE turn IN (SELECT value FROM json_each(:turns));

-- name: subjects
-- scans: twelve rows at most
SELECT 'psyche_arc', arc, body FROM psyche_arc UNION ALL SELECT 'psyche_intention', intention, body FROM psyche_intention;

-- name: erase_arc
DELETE FROM psyche_arc WHERE arc = :subject;

-- name: erase_intention
DELETE FROM psyche_intention WHERE intention = :subject;

-- name: erase_turn
DELETE FROM turn WHERE turn = :turn;

-- name: erase_record
DELETE FROM turn_record WHERE id = :record;

-- name: keep_others_lines
DELETE FROM entry WHERE conversation = :conversation AND number = :number
  AND (person IS NULL OR person IN (SELECT value FROM json_each(:ids)));

-- name: keep_others_turn
UPDATE turn SET person = :person, shown = '[]', edits = edits + 1 WHERE turn = :turn;

-- name: blank_record
UPDATE turn_record SET flags = '[]', attention = '{}', changes = '{}', thoughts = '[]', snapshot = :erased WHERE id = :record;

-- name: blank_snapshot
UPDATE turn_record SET snapshot = :erased WHERE id = :id;

-- name: blank_thoughts
UPDATE turn_record SET attention = '{}', changes = '{}', thoughts = '[]' WHERE id = :id;

-- name: records_kept
-- scans: an erasure reads everything once
SELECT r.id, r.snapshot, r.changes || r.thoughts || r.attention, t.conversation, t.number FROM turn_record r
JOIN turn t ON t.record = r.id;

-- name: soul_texts
-- scans: an erasure reads everything once; what stands in the soul's own files is nobody's
SELECT content FROM blob WHERE substr(content, 1, 9) = CAST('{"files":' AS BLOB);

-- name: blobs_kept
-- scans: an erasure reads everything once
SELECT sha256, content FROM blob;

-- name: erase_blob
DELETE FROM blob WHERE sha256 = :sha256;

-- name: shown_kept
-- scans: an erasure reads everything once
SELECT turn, shown FROM turn WHERE shown <> '[]';

-- name: show_less
UPDATE turn SET shown = :shown, edits = edits + 1 WHERE turn = :turn;

-- name: erase_said
-- scans: an erasure reads everything once
DELETE FROM outbox WHERE turn IN (SELECT value FROM json_each(:turns))
  OR conversation IN (SELECT value FROM json_each(:places));

-- name: erase_heard
-- The key stays, so that what the network brings again is still known; nothing of what it stood for does.
-- scans: an erasure reads everything once
UPDATE inbox SET person = '', conversation = '', position = '', kind = 'erased', owes = 0, state = 'settled', inputs = '{}',
    payload = '{"text":""}', turn = '', reason = 'erased', not_before = NULL, settled_at = coalesce(settled_at, heard_at)
WHERE person IN (SELECT value FROM json_each(:ids)) OR conversation IN (SELECT value FROM json_each(:places));

-- name: settle_unanswered
UPDATE inbox SET state = 'settled', reason = 'erased', settled_at = heard_at,
    payload = CASE WHEN json_valid(payload)
        THEN json_set(payload, '$.text', '', '$.extra', json('{}')) ELSE '{"text":""}' END
WHERE turn IN (SELECT value FROM json_each(:turns)) AND state = 'committed';

-- name: erase_calls
-- What they cost stays, so that nobody's budget grows by it.
-- scans: an erasure reads everything once
UPDATE step SET person = '', conversation = '', response = '', request_sha256 = ''
WHERE person IN (SELECT value FROM json_each(:ids)) OR turn IN (SELECT value FROM json_each(:turns))
  OR conversation IN (SELECT value FROM json_each(:places));

-- name: erase_summarising
-- scans: an erasure reads everything once
UPDATE step SET response = '' WHERE purpose = 'summary' AND conversation IN (SELECT value FROM json_each(:places));

-- name: erase_summary
UPDATE summary SET text = '', sources = '[]' WHERE conversation IN (SELECT value FROM json_each(:places));

-- name: erase_whispers
-- scans: an erasure reads everything once
DELETE FROM whisper WHERE conversation IN (SELECT value FROM json_each(:places));

-- name: erase_kept
DELETE FROM kept WHERE conversation IN (SELECT value FROM json_each(:places));

-- name: erase_plans
-- scans: an erasure reads everything once
DELETE FROM due WHERE person IN (SELECT value FROM json_each(:ids)) OR asked_by IN (SELECT value FROM json_each(:ids))
  OR audience IN (SELECT value FROM json_each(:labels)) OR conversation IN (SELECT value FROM json_each(:places));

-- name: erase_places
DELETE FROM conversation WHERE conversation IN (SELECT value FROM json_each(:places));

-- name: erase_threads
DELETE FROM thread WHERE conversation IN (SELECT value FROM json_each(:places));

-- name: moved_on
-- A turn that is thought just now was begun with what is gone: it is thought anew.
-- scans: one row a conversation
UPDATE conversation SET version = version + 1,
    entries = (SELECT count(*) FROM entry WHERE entry.conversation = conversation.conversation);

-- name: audiences_with
-- scans: an erasure reads everything once
SELECT DISTINCT audience FROM audience_member WHERE person IN (SELECT value FROM json_each(:ids));

-- name: erase_models
-- scans: an erasure reads everything once
DELETE FROM user_model WHERE person IN (SELECT value FROM json_each(:ids)) OR audience IN (SELECT value FROM json_each(:labels));

-- name: versions_in_git
-- scans: an erasure reads everything once
SELECT count(*) FROM user_model m JOIN revision r ON r.id = m.revision
WHERE m.person IN (SELECT value FROM json_each(:ids)) AND r.git_commit IS NOT NULL;

-- name: erase_state
-- scans: an erasure reads everything once
DELETE FROM soul_state WHERE audience IN (SELECT value FROM json_each(:labels))
  OR revision IN (SELECT id FROM revision WHERE turn IN (SELECT value FROM json_each(:turns)));

-- name: state_in_force
-- scans: an erasure reads everything once
UPDATE soul_state SET newest = 1 WHERE id IN (SELECT max(id) FROM soul_state GROUP BY key, audience) AND newest = 0;

-- name: erase_revisions
-- scans: an erasure reads everything once
DELETE FROM revision WHERE id NOT IN (SELECT revision FROM user_model) AND id NOT IN (SELECT revision FROM soul_state);

-- name: everyone
-- scans: an erasure reads everything once
SELECT person FROM person UNION SELECT person FROM user_model UNION SELECT person FROM inbox UNION SELECT person FROM turn
UNION SELECT person FROM entry WHERE person IS NOT NULL UNION SELECT person FROM person_link
UNION SELECT canonical FROM person_link UNION SELECT person FROM audience_member;

-- name: last_heard
SELECT max(at) FROM (SELECT max(heard_at) AS at FROM inbox UNION ALL SELECT max(at) FROM turn);

-- name: messages_of
-- scans: an export reads everything once
SELECT t.turn, t.conversation, e.at, e.entry_type, e.verb, e.person, e.content FROM entry e
JOIN turn t ON t.conversation = e.conversation AND t.number = e.number
WHERE e.person IN (SELECT value FROM json_each(:ids))
   OR (e.entry_type = 'externalDialog' AND t.person IN (SELECT value FROM json_each(:ids)))
ORDER BY e.at, e.n;

-- name: state_of_labels
-- scans: an export reads everything once
SELECT key, value, audience, updated_at FROM soul_state WHERE newest = 1 AND audience IN (SELECT value FROM json_each(:labels));

-- name: erase_arcs
-- scans: twelve rows at most
DELETE FROM psyche_arc WHERE NOT EXISTS (
    SELECT 1 FROM json_each(body, '$.persons') p WHERE p.value NOT IN (SELECT value FROM json_each(:ids)))
  OR EXISTS (SELECT 1 FROM json_each(body, '$.sources') s WHERE s.value IN (SELECT value FROM json_each(:labels)));

-- name: arcs_shared
-- scans: twelve rows at most
SELECT arc, body FROM psyche_arc;

-- name: unname_arc
UPDATE psyche_arc SET body = :body WHERE arc = :arc;

-- name: erase_intentions
-- scans: twelve rows at most
DELETE FROM psyche_intention WHERE json_extract(body, '$.person') IN (SELECT value FROM json_each(:ids))
  OR json_extract(body, '$.target') IN (SELECT value FROM json_each(:ids))
  OR EXISTS (SELECT 1 FROM json_each(body, '$.sources') s WHERE s.value IN (SELECT value FROM json_each(:labels)));

-- name: erase_previous
-- scans: an erasure reads everything once
UPDATE psyche_episode SET previous = '', previous_stems = ''
WHERE previous <> '' AND conversation IN (SELECT value FROM json_each(:places));

-- name: psyche_index_anew
-- What was deleted from it stands in its pages until it is built anew.
INSERT INTO psyche_episode_index (psyche_episode_index) VALUES ('rebuild');
