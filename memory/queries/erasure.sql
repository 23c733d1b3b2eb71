-- `store.erasure`: find and remove one person's rows. `:ids` is a JSON list of every id of that person, `:labels` of the labels of what
-- was learned from that person alone, `:places` of the conversations that are theirs alone. Queries that find rows run
-- beside the writer; those that change rows do it by key, a few per transaction.

-- name: private_places
-- scans: an erasure reads everything once, beside the writer
SELECT conversation FROM conversation WHERE audience IN (SELECT value FROM json_each(:labels));

-- name: places_spoken_in
-- scans: an erasure reads everything once, beside the writer
SELECT conversation FROM conversation_person WHERE person IN (SELECT value FROM json_each(:ids));

-- name: turns_of
-- scans: an erasure reads everything once, beside the writer
SELECT turn, conversation, number, record FROM turn
WHERE person IN (SELECT value FROM json_each(:ids)) OR audience IN (SELECT value FROM json_each(:labels)) OR conversation IN (SELECT value FROM json_each(:places))
  OR turn IN (SELECT turn FROM inbox WHERE person IN (SELECT value FROM json_each(:ids)))
  OR turn IN (SELECT turn FROM moment WHERE person IN (SELECT value FROM json_each(:ids)))
  OR (conversation, number) IN (SELECT conversation, number FROM entry WHERE person IN (SELECT value FROM json_each(:ids)));

-- name: erasing_put
INSERT INTO erasing (turn, conversation, number, record) VALUES (:turn, :conversation, :number, :record) ON CONFLICT DO NOTHING;

-- name: erasing_turns
-- scans: an erasure reads everything once, beside the writer
SELECT turn, conversation, number, record FROM erasing;

-- name: erasing_has
SELECT 1 FROM erasing WHERE turn = :turn;

-- name: erasing_in
-- scans: an erasure reads everything once, beside the writer
SELECT 1 FROM erasing WHERE conversation = :conversation LIMIT 1;

-- name: erasing_done
DELETE FROM erasing WHERE turn = :turn;

-- name: touched
-- scans: an erasure reads everything once, beside the writer
SELECT DISTINCT conversation FROM erasing WHERE conversation NOT IN (SELECT value FROM json_each(:places));

-- name: erase_waiting
-- Pending perceptions of that person are settled first, so that no turn of theirs commits any more.
UPDATE inbox SET person = '', conversation = '', position = '', kind = 'erased', owes = 0, state = 'settled', inputs = '{}',
    payload = '{"text":""}', turn = '', reason = 'erased', not_before = NULL, settled_at = coalesce(settled_at, heard_at)
WHERE state <> 'settled' AND (person IN (SELECT value FROM json_each(:ids)) OR conversation IN (SELECT value FROM json_each(:places)));

-- name: unfinished_turns
SELECT turn, conversation FROM inbox
WHERE (state = 'pending' OR state = 'taken' OR state = 'thought') AND kind <> 'command' AND kind <> 'tick';

-- name: running_turns
-- Those that may have the old words in sight, in these channels or everywhere. Each is thought again three times at most: nobody can keep
-- others from being answered by edits and deletions.
SELECT turn, conversation FROM inbox
WHERE (state = 'pending' OR state = 'taken' OR state = 'thought') AND state <> 'pending' AND again < 3 AND kind <> 'command' AND kind <> 'tick'
  AND (:is_everywhere = 1 OR EXISTS (
    SELECT 1 FROM json_each(:channels) c WHERE inbox.conversation >= c.value || ':' AND inbox.conversation < c.value || ';'));

-- name: turns_under_way
SELECT turn FROM inbox
WHERE (state = 'pending' OR state = 'taken' OR state = 'thought') AND state <> 'pending' AND kind <> 'command' AND kind <> 'tick';

-- name: turns_since
SELECT 1 AS is_any FROM turn WHERE at >= :at
  AND (:is_everywhere = 1 OR (conversation >= :channel || ':' AND conversation < :channel || ';')) LIMIT 1;

-- name: unsaid_put
INSERT INTO unsaid (person, change) VALUES (:person, :change);

-- name: unsaid_now
-- scans: what waits to be undone, a few rows
SELECT n, change FROM unsaid ORDER BY n;

-- name: unsaid_done
DELETE FROM unsaid WHERE n = :n;

-- name: interaction_reworded
UPDATE interaction SET preview = :preview WHERE turn = :turn AND direction = 'in';

-- name: promise_unsaid
DELETE FROM promise WHERE turn = :turn AND side = 'theirs';

-- name: begin_anew
-- A running turn may have begun with what is gone, so it is thought again, as another turn.
UPDATE inbox SET turn = :anew, state = 'pending', inputs = '{}', again = again + 1 WHERE turn = :turn AND (state = 'pending' OR state = 'taken' OR state = 'thought');

-- name: turns_seen
SELECT t.at, t.turn, t.conversation, t.number, t.record, t.audience, r.kept, r.snapshot FROM turn t JOIN turn_record r ON r.id = t.record
WHERE t.at >= :at AND (t.at, t.conversation, t.number) > (:at, :conversation, :number)
ORDER BY t.at, t.conversation, t.number LIMIT :most;

-- name: heard_since
-- scans: what was heard in the last days, after a gap
SELECT "key", conversation FROM inbox WHERE heard_at >= :since AND person <> '' AND (kind = 'message' OR kind = 'mention')
  AND coalesce(edited, '') <> '~' AND "key" NOT LIKE '%@%';

-- name: erasing_since
SELECT min(at) AS at FROM turn WHERE turn IN (SELECT turn FROM erasing);

-- name: erasing_gone
-- scans: an erasure reads everything once, beside the writer
SELECT turn FROM erasing WHERE NOT EXISTS (SELECT 1 FROM turn WHERE turn.turn = erasing.turn);

-- name: rows_of_person
-- scans: an erasure reads everything once, beside the writer
SELECT 'moment' AS kind, CAST(id AS TEXT) AS a FROM moment WHERE person IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT 'fact', CAST(id AS TEXT) FROM fact WHERE person IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT 'matter', CAST(id AS TEXT) FROM matter WHERE person IN (SELECT value FROM json_each(:ids));

-- name: keys_of_person
-- scans: an erasure reads everything once, beside the writer
SELECT key FROM inbox WHERE person IN (SELECT value FROM json_each(:ids));

-- name: names_of_person
-- scans: an erasure reads everything once, beside the writer
-- The names of a person that nobody else has.
SELECT name FROM (
    SELECT name FROM person WHERE person IN (SELECT value FROM json_each(:ids))
    UNION SELECT name FROM entry WHERE person IN (SELECT value FROM json_each(:ids))) AS own
WHERE name <> '' AND name NOT IN (SELECT name FROM person WHERE person NOT IN (SELECT value FROM json_each(:ids)));

-- name: written_by
-- scans: an erasure reads everything once, beside the writer
SELECT 'moment' AS kind, CAST(id AS TEXT) AS a, '' AS b, '' AS c FROM moment
WHERE is_own = 1 AND turn IN (SELECT value FROM json_each(:turns))
UNION ALL SELECT 'state', s."key", s.audience, s.updated_at FROM soul_state s JOIN revision r ON r.id = s.revision
WHERE r.turn IN (SELECT value FROM json_each(:turns))
UNION ALL SELECT 'portrait', m.person, m.audience, CAST(m.version AS TEXT) FROM user_model m JOIN revision r ON r.id = m.revision
WHERE r.turn IN (SELECT value FROM json_each(:turns))
UNION ALL SELECT 'moment', CAST(m.id AS TEXT), '', '' FROM moment m JOIN turn t ON t.conversation = m.conversation
    AND t.number <= CASE WHEN m.person = '' AND m.is_own = 0 THEN CAST(m.position AS BIGINT) ELSE -1 END
    AND t.turn IN (SELECT value FROM json_each(:turns))
UNION ALL SELECT 'whisper', CAST(id AS TEXT), '', '' FROM whisper WHERE conversation IN (
    SELECT conversation FROM turn WHERE turn IN (SELECT value FROM json_each(:turns)))
UNION ALL SELECT 'post', receipt, '', '' FROM outbox WHERE receipt IS NOT NULL AND turn IN (SELECT value FROM json_each(:turns))
UNION ALL SELECT 'fact', CAST(id AS TEXT), '', '' FROM fact WHERE turn IN (SELECT value FROM json_each(:turns))
UNION ALL SELECT 'matter', CAST(id AS TEXT), '', '' FROM matter WHERE turn IN (SELECT value FROM json_each(:turns))
UNION ALL SELECT 'belief', "key", audience, '' FROM belief WHERE EXISTS (SELECT 1 FROM json_each(evidence) e JOIN interaction i ON i.id = CAST(e.value AS BIGINT)
    WHERE i.turn IN (SELECT value FROM json_each(:turns)));

-- name: soul_lines
SELECT content AS text, CASE WHEN metadata LIKE '%"acts"%' THEN 1 ELSE 0 END AS is_acts FROM entry
WHERE conversation = :conversation AND number = :number AND person IS NULL
UNION ALL SELECT body, 0 FROM outbox WHERE turn = :turn;

-- name: texts_that_stay
-- scans: an erasure reads everything once, beside the writer
SELECT '' AS turn, content AS text, audience FROM entry WHERE person IS NOT NULL AND person NOT IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT '', text, audience FROM moment WHERE is_own = 0 AND person <> '' AND person NOT IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT turn, text, audience FROM fact WHERE person NOT IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT '', CASE WHEN json_valid(i.payload) THEN json_extract(i.payload, '$.text') END, coalesce((SELECT t.audience FROM turn t WHERE t.turn = i.turn), '')
FROM inbox i WHERE i.person <> '' AND i.person NOT IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT '', m.markdown, m.audience FROM user_model m JOIN revision r ON r.id = m.revision WHERE r.author IN ('owner', 'person')
UNION ALL SELECT '', s.value, s.audience FROM soul_state s JOIN revision r ON r.id = s.revision WHERE r.turn IS NULL
UNION ALL SELECT o.turn, o.body, coalesce((SELECT t.audience FROM turn t WHERE t.turn = o.turn), '') FROM outbox o
UNION ALL SELECT t.turn, e.content, t.audience FROM entry e JOIN turn t ON t.conversation = e.conversation AND t.number = e.number WHERE e.person IS NULL;

-- name: others_in_turn
SELECT DISTINCT person FROM entry WHERE conversation = :conversation AND number = :number AND person IS NOT NULL
  AND person NOT IN (SELECT value FROM json_each(:ids));

-- name: texts_of
-- scans: an erasure reads everything once, beside the writer
SELECT content AS text FROM entry WHERE person IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT markdown FROM user_model WHERE person IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT text FROM moment WHERE person IN (SELECT value FROM json_each(:ids)) AND is_own = 0
UNION ALL SELECT CASE WHEN json_valid(payload) THEN json_extract(payload, '$.text') END FROM inbox WHERE person IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT text || ' ' || about || ' ' || why FROM fact WHERE person IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT text FROM matter WHERE person IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT value FROM soul_state WHERE audience IN (SELECT value FROM json_each(:labels));

-- name: texts_of_others
-- scans: an erasure reads everything once, beside the writer
-- What others said, what was said to them, and what is kept of that.
SELECT content AS text FROM entry WHERE person IS NOT NULL AND person NOT IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT content FROM entry WHERE person IS NULL AND (conversation, number) NOT IN (
    SELECT conversation, number FROM turn WHERE person IN (SELECT value FROM json_each(:ids)))
UNION ALL SELECT markdown FROM user_model WHERE person NOT IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT text FROM moment WHERE person <> '' AND person NOT IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT text || ' ' || keys || ' ' || about || ' ' || why FROM fact WHERE person NOT IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT text FROM matter WHERE person NOT IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT preview FROM interaction WHERE peer_id NOT IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT what FROM promise WHERE peer_id NOT IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT text FROM due WHERE person NOT IN (SELECT value FROM json_each(:ids)) AND asked_by NOT IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT CASE WHEN json_valid(payload) THEN json_extract(payload, '$.text') END FROM inbox WHERE person NOT IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT body FROM outbox WHERE turn NOT IN (SELECT turn FROM turn WHERE person IN (SELECT value FROM json_each(:ids)));

-- name: words_of_others
-- scans: an erasure reads everything once, beside the writer
SELECT content AS text FROM entry WHERE person IS NOT NULL AND person NOT IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT markdown FROM user_model WHERE person NOT IN (SELECT value FROM json_each(:ids));

-- name: lessons_of
-- scans: an erasure reads everything once, beside the writer
SELECT key, audience FROM lesson WHERE (key, audience) IN (SELECT key, audience FROM belief WHERE EXISTS (SELECT 1 FROM json_each(evidence) e JOIN interaction i ON i.id = CAST(e.value AS BIGINT)
    WHERE i.peer_id IN (SELECT value FROM json_each(:ids)) OR i.turn IN (SELECT turn FROM erasing)));

-- name: erase_lesson
DELETE FROM lesson WHERE key = :key AND audience = :audience;

-- name: beliefs_of
-- scans: an erasure reads everything once, beside the writer
SELECT key, audience FROM belief WHERE EXISTS (SELECT 1 FROM json_each(evidence) e JOIN interaction i ON i.id = CAST(e.value AS BIGINT)
    WHERE i.peer_id IN (SELECT value FROM json_each(:ids)) OR i.turn IN (SELECT turn FROM erasing));

-- name: erase_belief
DELETE FROM belief WHERE key = :key AND audience = :audience;

-- name: reflections_of
-- scans: an erasure reads everything once, beside the writer
SELECT cycle FROM reflection WHERE EXISTS (SELECT 1 FROM json_each(evidence) e JOIN interaction i ON i.id = CAST(e.value AS BIGINT)
    WHERE i.peer_id IN (SELECT value FROM json_each(:ids)) OR i.turn IN (SELECT turn FROM erasing));

-- name: erase_reflection
DELETE FROM reflection WHERE cycle = :cycle;

-- name: erase_interactions
-- What others said stays.
DELETE FROM interaction WHERE turn = :turn AND (direction = 'out' OR peer_id IN (SELECT value FROM json_each(:ids)));

-- name: erase_turn_calls
-- What was asked for or done stays as done; nobody allows any more what has lost its arguments.
UPDATE tool_call SET args = '{}', result = '', state = CASE WHEN state IN ('waiting', 'approved') THEN 'withdrawn' ELSE state END
WHERE turn = :turn;

-- name: erase_turn_appraisals
DELETE FROM appraisal WHERE turn = :turn;

-- name: assessments_derived
-- scans: an erasure reads everything once, beside the writer
-- Those of a derived turn or cycle have its instant.
SELECT id FROM assessment WHERE author = 'inline' AND created_at IN (SELECT at FROM turn WHERE turn IN (SELECT turn FROM erasing))
  OR author = 'cortex' AND created_at IN (SELECT at FROM reflection WHERE EXISTS (
    SELECT 1 FROM json_each(evidence) e JOIN interaction i ON i.id = CAST(e.value AS BIGINT)
    WHERE i.peer_id IN (SELECT value FROM json_each(:ids)) OR i.turn IN (SELECT turn FROM erasing)));

-- name: erase_assessment
DELETE FROM assessment WHERE id = :id;

-- name: directives_of
-- scans: an erasure reads everything once, beside the writer
SELECT seq FROM inbox WHERE state <> 'settled' AND "key" IN (SELECT d.value FROM reflection r, json_each(r.directives) d WHERE EXISTS (
    SELECT 1 FROM json_each(r.evidence) e JOIN interaction i ON i.id = CAST(e.value AS BIGINT)
    WHERE i.peer_id IN (SELECT value FROM json_each(:ids)) OR i.turn IN (SELECT turn FROM erasing)));

-- name: promises_made
-- What the soul promised.
SELECT id FROM promise WHERE side = 'mine' AND turn IN (SELECT turn FROM erasing);

-- name: plans_promised
-- scans: an erasure reads everything once, beside the writer
SELECT plan AS id FROM promise WHERE side = 'mine' AND plan IS NOT NULL AND turn IN (SELECT turn FROM erasing)
UNION SELECT id FROM due WHERE made_as <> '' AND made_by IN (SELECT turn FROM erasing);

-- name: facts_told
-- scans: an erasure reads everything once, beside the writer
-- What the person told of others.
SELECT id FROM fact WHERE turn IN (SELECT turn FROM turn WHERE person IN (SELECT value FROM json_each(:ids)));

-- name: erase_fact
DELETE FROM fact WHERE id = :id;

-- name: matters_told
-- scans: an erasure reads everything once, beside the writer
SELECT id FROM matter WHERE turn IN (SELECT turn FROM turn WHERE person IN (SELECT value FROM json_each(:ids)));

-- name: facts_of_person
-- scans: an erasure reads everything once, beside the writer
SELECT id FROM fact WHERE person IN (SELECT value FROM json_each(:ids));

-- name: fact_unkeyed
-- Whoever told it: their message is no longer found by the keys of what is gone.
UPDATE moment SET pictures = trim(replace(pictures, (SELECT keys FROM fact WHERE id = :id), ''))
WHERE id IN (SELECT m.id FROM fact f JOIN turn t ON t.turn = f.turn
    JOIN moment m ON m.conversation = t.conversation AND m.turn = t.turn WHERE f.id = :id AND f.keys <> '' AND m.is_own = 0);

-- name: erase_matter
DELETE FROM matter WHERE id = :id;

-- name: erase_promise
DELETE FROM promise WHERE id = :id;

-- name: erase_own_plan
DELETE FROM due WHERE id = :id AND (asked_by = '' OR made_as = 'promise');

-- name: plan_in_own_words
-- What somebody asked to be reminded of, as they said it; else in no words.
UPDATE due SET text = coalesce((
    SELECT m.text FROM turn t JOIN moment m ON m.conversation = t.conversation AND m.turn = t.turn
    WHERE t.turn = due.made_by AND m.is_own = 0 AND m.person = due.asked_by ORDER BY m.id DESC LIMIT 1), ''), params = '{}' WHERE id = :id;

-- name: told
-- scans: an erasure reads everything once, beside the writer
-- What the soul wrote in no turn, or in one whose record is gone; each row is tested by its words.
SELECT 'belief' AS kind, "key" AS a, audience AS b, value || ' ' || rationale AS text, audience FROM belief
UNION ALL SELECT 'lesson', "key", audience, value, audience FROM lesson
UNION ALL SELECT 'reflection', CAST(cycle AS TEXT), '', summary, audience FROM reflection
UNION ALL SELECT 'assessment', CAST(id AS TEXT), '', rationale, '' FROM assessment
UNION ALL SELECT 'whisper', CAST(w.id AS TEXT), '', w.text, coalesce((SELECT max(t.audience) FROM turn t WHERE t.conversation = w.conversation), '') FROM whisper w
UNION ALL SELECT 'summary', s.conversation, '', s.text, coalesce((SELECT max(t.audience) FROM turn t WHERE t.conversation = s.conversation), '') FROM summary s
UNION ALL SELECT 'moment', CAST(id AS TEXT), '', text || ' ' || pictures, audience FROM moment WHERE person = '' AND is_own = 0
UNION ALL SELECT 'kept', k.conversation, k.name, k.value, coalesce((SELECT max(t.audience) FROM turn t WHERE t.conversation = k.conversation), '') FROM kept k
UNION ALL SELECT 'promise', CAST(id AS TEXT), '', what, audience FROM promise WHERE side = 'mine'
UNION ALL SELECT 'due', CAST(id AS TEXT), '', text || ' ' || params, audience FROM due WHERE asked_by = '' OR made_as = 'promise'
UNION ALL SELECT 'psyche_arc', arc, '', CASE WHEN json_valid(body)
    THEN coalesce(json_extract(body, '$.label'), '') || ' ' || coalesce(json_extract(body, '$.stems'), '') ELSE body END, '' FROM psyche_arc
UNION ALL SELECT 'step', turn, CAST(n AS TEXT), response, '' FROM step WHERE purpose = 'summary' AND response <> ''
UNION ALL SELECT 'conversation', c.conversation, '', c.params || ' ' || c.process_memory, coalesce((SELECT max(t.audience) FROM turn t WHERE t.conversation = c.conversation), '')
FROM conversation c WHERE c.params <> '{}' OR c.process_memory <> '{}';

-- name: booked
-- scans: an erasure reads everything once, beside the writer
-- What a turn booked for others: facts, what is open in their lives, what they asked to be reminded of.
SELECT 'fact' AS kind, id, turn, audience, text, text || ' ' || keys || ' ' || about || ' ' || why AS whole FROM fact
UNION ALL SELECT 'matter', id, turn, audience, text, text FROM matter
UNION ALL SELECT 'asked', id, made_by, audience, text, text FROM due WHERE asked_by <> '' AND made_as <> 'promise';

-- name: said_in_turn
SELECT m.text FROM turn t JOIN moment m ON m.conversation = t.conversation AND m.turn = t.turn
WHERE t.turn = :turn AND m.is_own = 0 AND m.person NOT IN (SELECT value FROM json_each(:ids));

-- name: portraits_written
-- scans: an erasure reads everything once, beside the writer
SELECT DISTINCT m.person, m.audience FROM user_model m JOIN revision r ON r.id = m.revision WHERE r.turn IN (SELECT value FROM json_each(:turns));

-- name: portrait_versions
SELECT m.version, m.markdown, m.newest, m.suspect, m.revision, r.turn, r.note FROM user_model m JOIN revision r ON r.id = m.revision
WHERE m.person = :person AND m.audience = :audience ORDER BY m.version;

-- name: version_put_back
UPDATE user_model SET markdown = :markdown WHERE person = :person AND audience = :audience AND version = :version;

-- name: note_blanked
UPDATE revision SET note = :note WHERE id = :revision;

-- name: subjects
-- scans: twelve rows at most
SELECT arc AS subject FROM psyche_arc;

-- name: erase_arc
DELETE FROM psyche_arc WHERE arc = :subject;

-- name: processes_of
-- scans: an erasure reads everything once, beside the writer
SELECT conversation FROM conversation WHERE (params <> '{}' OR process_memory <> '{}') AND conversation IN (SELECT conversation FROM erasing);

-- name: process_blanked
-- A turn that runs there was shown the old ones, so it is thought again.
UPDATE conversation SET params = '{}', process_memory = '{}', version = version + 1 WHERE conversation = :conversation;

-- name: erase_turn
DELETE FROM turn WHERE turn = :turn;

-- name: erase_record
DELETE FROM turn_record WHERE id = :record;

-- name: daimons_are_nobody
-- scans: an erasure reads everything once
UPDATE entry SET person = NULL WHERE entry_type = 'daimonSpeech' AND person IS NOT NULL;

-- name: keep_others_lines
DELETE FROM entry WHERE conversation = :conversation AND number = :number
  AND (person IS NULL OR entry_type = 'daimonSpeech' OR person IN (SELECT value FROM json_each(:ids)));

-- name: keep_others_turn
UPDATE turn SET person = CASE WHEN person IN (SELECT value FROM json_each(:ids)) THEN :person ELSE person END,
    shown = '[]', edits = edits + 1 WHERE turn = :turn;

-- name: unsaid
-- Whether a turn is to be said and none of it has been.
SELECT 1 FROM inbox WHERE turn = :turn AND state = 'committed'
  AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.turn = inbox.turn AND state IN ('sent', 'unknown_after_send')) LIMIT 1;

-- name: think_anew
UPDATE inbox SET turn = :anew, state = 'pending', inputs = '{}' WHERE turn = :turn AND state = 'committed';

-- name: moments_unkeyed
-- The keys of facts, by which a message is found, are the soul's own words.
UPDATE moment SET pictures = '' WHERE conversation = :conversation AND turn = :turn AND is_own = 0 AND pictures <> '';

-- name: moments_anew
DELETE FROM moment WHERE conversation = :conversation AND turn = :turn;

-- name: posts_of
SELECT conversation, receipt, coalesce(sent_at, '') AS at FROM outbox WHERE turn = :turn AND state = 'sent' AND receipt IS NOT NULL AND kind <> 'reaction' ORDER BY part;

-- name: blank_record
UPDATE turn_record SET flags = '[]', attention = '{}', changes = '{}', thoughts = '[]', snapshot = :erased, kept = :kept
WHERE id = :record;

-- name: record_reduced
UPDATE turn_record SET kept = :kept WHERE id = :record;

-- name: record_kept
SELECT kept FROM turn_record WHERE id = :record;

-- name: soul_texts
-- scans: an erasure reads everything once, beside the writer
-- The contents of the soul's own files belong to nobody.
SELECT content AS text FROM blob WHERE substr(content, 1, 9) = CAST('{"files":' AS BLOB);

-- name: blobs_kept
-- scans: an erasure reads everything once, beside the writer
SELECT sha256, content FROM blob
WHERE substr(content, 1, 8) = CAST('{"turn":' AS BLOB) OR substr(content, 1, 16) = CAST('{"conversation":' AS BLOB);

-- name: blob_less
UPDATE blob SET content = :content WHERE sha256 = :sha256;

-- name: erase_turn_said
DELETE FROM outbox WHERE turn = :turn;

-- name: erase_turn_unsent
DELETE FROM outbox WHERE turn = :turn AND state <> 'sent';

-- name: own_moments_let_go
DELETE FROM moment WHERE conversation = :conversation AND turn = :turn AND is_own = 1;

-- name: turn_said_blanked
UPDATE outbox SET body = '', receipts = '[]' WHERE turn = :turn AND state = 'sent';

-- name: said_in_places
-- scans: an erasure reads everything once, beside the writer
SELECT seq FROM outbox WHERE conversation IN (SELECT value FROM json_each(:places));

-- name: erase_said
DELETE FROM outbox WHERE seq = :seq;

-- name: heard_of
-- scans: an erasure reads everything once, beside the writer
SELECT seq FROM inbox WHERE kind <> 'erased' AND (person IN (SELECT value FROM json_each(:ids)) OR conversation IN (SELECT value FROM json_each(:places)));

-- name: erase_heard
-- The key stays, so that a redelivery by the network is still recognised; the contents go. That of a reaction names it.
UPDATE inbox SET key = CASE WHEN kind = 'reaction' THEN 'reaction:' || seq ELSE key END, person = '', conversation = '',
    position = '', kind = 'erased', owes = 0, state = 'settled', inputs = '{}', payload = '{"text":""}', turn = '', reason = 'erased', not_before = NULL, settled_at = coalesce(settled_at, heard_at)
WHERE seq = :seq;

-- name: settle_unanswered
UPDATE inbox SET state = 'settled', reason = 'erased', settled_at = heard_at,
    payload = CASE WHEN json_valid(payload)
        THEN json_set(payload, '$.text', '', '$.extra', json('{}')) ELSE '{"text":""}' END
WHERE turn = :turn AND state = 'committed';

-- name: calls_of
-- scans: an erasure reads everything once, beside the writer
SELECT turn, n FROM step WHERE person IN (SELECT value FROM json_each(:ids)) OR conversation IN (SELECT value FROM json_each(:places));

-- name: erase_call
-- Their cost stays, so that nobody's budget grows.
UPDATE step SET person = '', conversation = '', response = '', request_sha256 = '' WHERE turn = :turn AND n = :n;

-- name: summarising
-- scans: an erasure reads everything once, beside the writer
SELECT turn, n FROM step WHERE response <> '' AND (purpose = 'whisper' OR purpose = 'summary' AND conversation IN (SELECT conversation FROM erasing));

-- name: erase_summarising
UPDATE step SET response = '' WHERE turn = :turn AND n = CAST(:n AS BIGINT);

-- name: summaries_of
-- scans: an erasure reads everything once, beside the writer
SELECT s.conversation FROM summary s WHERE s.text <> '' AND EXISTS (
    SELECT 1 FROM erasing e WHERE e.conversation = s.conversation AND e.number <= s.upto);

-- name: diaries_of
-- scans: an erasure reads everything once, beside the writer
-- A diary's position is the number of the last turn that it tells of.
SELECT m.id FROM moment m WHERE EXISTS (SELECT 1 FROM erasing e WHERE e.conversation = m.conversation
    AND e.number <= CASE WHEN m.person = '' AND m.is_own = 0 THEN CAST(m.position AS BIGINT) ELSE -1 END);

-- name: erase_diary
DELETE FROM moment WHERE id = CAST(:id AS BIGINT);

-- name: erase_summary
UPDATE summary SET text = '', sources = '[]' WHERE conversation = :conversation;

-- name: whispers_of
-- scans: an erasure reads everything once, beside the writer
SELECT id FROM whisper WHERE conversation IN (SELECT conversation FROM erasing);

-- name: erase_whisper
DELETE FROM whisper WHERE id = :id;

-- name: kept_of
-- scans: an erasure reads everything once, beside the writer
SELECT conversation, name FROM kept WHERE conversation IN (SELECT conversation FROM erasing);

-- name: erase_kept
DELETE FROM kept WHERE conversation = :conversation AND name = :name;

-- name: plans_of
-- scans: an erasure reads everything once, beside the writer
SELECT id FROM due WHERE person IN (SELECT value FROM json_each(:ids)) OR asked_by IN (SELECT value FROM json_each(:ids)) OR audience IN (SELECT value FROM json_each(:labels)) OR conversation IN (SELECT value FROM json_each(:places));

-- name: erase_plan
DELETE FROM due WHERE id = :id;

-- name: private_conversations
-- scans: an erasure reads everything once, beside the writer
SELECT conversation FROM conversation WHERE conversation IN (SELECT value FROM json_each(:places));

-- name: erase_place
DELETE FROM conversation WHERE conversation = :conversation;

-- name: private_threads
-- scans: an erasure reads everything once, beside the writer
SELECT conversation FROM thread WHERE conversation IN (SELECT value FROM json_each(:places));

-- name: erase_thread
DELETE FROM thread WHERE conversation = :conversation;

-- name: channels_of
-- scans: one row per channel
-- Where the App Home of a person stands for the channel of their commands, its name is theirs.
SELECT adapter, channel FROM heard WHERE adapter || ':' || channel IN (SELECT value FROM json_each(:ids));

-- name: erase_channel
DELETE FROM heard WHERE adapter = :adapter AND channel = :channel;

-- name: moved
-- scans: an erasure reads everything once, beside the writer
SELECT conversation FROM conversation WHERE conversation IN (SELECT conversation FROM erasing);

-- name: moved_on
UPDATE conversation SET version = version + 1,
    entries = (SELECT count(*) FROM entry WHERE entry.conversation = conversation.conversation)
WHERE conversation = :conversation;

-- name: audiences_with
-- scans: an erasure reads everything once
SELECT DISTINCT audience FROM audience_member WHERE person IN (SELECT value FROM json_each(:ids));

-- name: models_of_person
-- scans: an erasure reads everything once, beside the writer
SELECT person, audience, version FROM user_model WHERE person IN (SELECT value FROM json_each(:ids)) OR audience IN (SELECT value FROM json_each(:labels));

-- name: erase_model
DELETE FROM user_model WHERE person = :person AND audience = :audience AND version = :version;

-- name: versions_in_git
-- scans: an erasure reads everything once
SELECT count(*) AS versions FROM user_model m JOIN revision r ON r.id = m.revision
WHERE m.person IN (SELECT value FROM json_each(:ids)) AND r.git_commit IS NOT NULL;

-- name: state_of_person
-- scans: an erasure reads everything once, beside the writer
SELECT id FROM soul_state WHERE audience IN (SELECT value FROM json_each(:labels));

-- name: erase_state
DELETE FROM soul_state WHERE id = :id;

-- name: erase_turn_state
DELETE FROM soul_state WHERE revision IN (SELECT id FROM revision WHERE turn = :turn);

-- name: state_not_in_force
-- scans: an erasure reads everything once, beside the writer
SELECT max(id) AS id FROM soul_state GROUP BY key, audience HAVING max(newest) = 0;

-- name: state_in_force
UPDATE soul_state SET newest = 1 WHERE id = :id AND NOT EXISTS (
    SELECT 1 FROM soul_state o WHERE o.audience = soul_state.audience AND o.key = soul_state.key AND o.newest = 1);

-- name: revisions_of_nothing
-- scans: an erasure reads everything once, beside the writer
SELECT id FROM revision r WHERE NOT EXISTS (SELECT 1 FROM user_model WHERE revision = r.id)
  AND NOT EXISTS (SELECT 1 FROM soul_state WHERE revision = r.id);

-- name: erase_revision
DELETE FROM revision WHERE id = :id AND NOT EXISTS (SELECT 1 FROM user_model WHERE revision = :id)
  AND NOT EXISTS (SELECT 1 FROM soul_state WHERE revision = :id);

-- name: everyone
-- scans: an erasure reads everything once
SELECT person FROM (
SELECT person FROM person UNION SELECT person FROM user_model UNION SELECT person FROM inbox UNION SELECT person FROM turn
UNION SELECT person FROM entry WHERE person IS NOT NULL UNION SELECT person FROM person_link
UNION SELECT canonical FROM person_link UNION SELECT person FROM audience_member
UNION SELECT who FROM audit WHERE who LIKE '%:%:%' UNION SELECT target FROM audit WHERE target LIKE '%:%:%') AS anybody
WHERE person <> '';

-- name: last_heard
SELECT max(at) AS at FROM (SELECT max(heard_at) AS at FROM inbox UNION ALL SELECT max(at) FROM turn) AS newest;

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

-- name: plans_made
-- scans: an export reads everything once
SELECT conversation, audience, scheduled_for AS at, zone, repeat, until, state, text FROM due
WHERE made_as <> '' AND state <> 'cancelled'
  AND (person IN (SELECT value FROM json_each(:ids)) OR asked_by IN (SELECT value FROM json_each(:ids))) ORDER BY scheduled_for, id;

-- name: moments_said
-- scans: an export reads everything once
SELECT turn, conversation, audience, strftime('%Y-%m-%dT%H:%M:%SZ', at_s, 'unixepoch') AS at, is_own, text FROM moment_said
WHERE person IN (SELECT value FROM json_each(:ids)) ORDER BY id;

-- name: facts_stated
-- scans: an export reads everything once
SELECT short, kind, text, keys, about, since, until, turn, audience, stated_s, ended_at, why FROM fact
WHERE person IN (SELECT value FROM json_each(:ids)) AND hidden_at IS NULL ORDER BY id;

-- name: matters_stated
-- scans: an export reads everything once
SELECT short, text, due, turn, audience, opened_at, closed_at FROM matter
WHERE person IN (SELECT value FROM json_each(:ids)) AND hidden_at IS NULL ORDER BY id;

-- name: erase_arcs
-- scans: twelve rows at most
-- Nobody can tell whose a damaged row was.
DELETE FROM psyche_arc WHERE CASE WHEN json_valid(body) THEN NOT EXISTS (
    SELECT 1 FROM json_each(body, '$.persons') p WHERE p.value NOT IN (SELECT value FROM json_each(:ids)))
  OR EXISTS (SELECT 1 FROM json_each(body, '$.sources') s WHERE s.value IN (SELECT value FROM json_each(:labels))) ELSE 1 = 1 END;

-- name: moment_index_merge
-- Deleted content stays in the index's pages until they are merged.
INSERT INTO moment_index (moment_index, rank) VALUES ('merge', :pages);

-- name: turn_blanked
UPDATE turn SET edits = edits + 1 WHERE conversation = :conversation AND number = :number;
