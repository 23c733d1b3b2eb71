-- `store.people`: who sees what, participation and pairing, links, and what persons may know of themselves.

-- name: person_known
SELECT 1 FROM person WHERE person = :person UNION ALL SELECT 1 FROM user_model WHERE person = :person AND newest = 1 LIMIT 1;

-- name: link_new
INSERT INTO person_link (person, canonical) VALUES (:person, :canonical);

-- name: link_moved
UPDATE person_link SET canonical = :canonical WHERE canonical = :other;

-- name: numbers_joined
-- No number is given again by either.
INSERT INTO numbered (person, audience, letter, last)
SELECT :kept, audience, letter, last FROM numbered WHERE person = :gone
ON CONFLICT (person, audience, letter) DO UPDATE SET last = max(numbered.last, excluded.last);

-- name: plans_alike
-- scans: only when ids are linked
-- What waits under a number that an older plan of the same person has in the same audience.
SELECT d.id, d.audience FROM due d
WHERE d.fired_turn IS NULL AND d.short > 0 AND d.person IN (SELECT value FROM json_each(:ids)) AND EXISTS (
    SELECT 1 FROM due e WHERE e.person IN (SELECT value FROM json_each(:ids)) AND e.audience = d.audience
      AND e.short = d.short AND e.fired_turn IS NULL AND e.id < d.id) ORDER BY d.id;

-- name: plan_called
UPDATE due SET short = :short WHERE id = :id;

-- name: facts_linked
-- Their numbers go on after those of the one they become.
UPDATE fact SET person = :kept, short = short + coalesce((
    SELECT last FROM numbered n WHERE n.person = :kept AND n.audience = fact.audience AND letter = 'f'), 0) WHERE person = :gone;

-- name: matters_linked
UPDATE matter SET person = :kept, short = short + coalesce((
    SELECT last FROM numbered n WHERE n.person = :kept AND n.audience = matter.audience AND letter = 'm'), 0) WHERE person = :gone;

-- name: numbers_kept
-- scans: one person's facts and matters
-- No number that a fact or a matter has is given again.
INSERT INTO numbered (person, audience, letter, last)
SELECT person, audience, letter, max(short) FROM (
    SELECT person, audience, 'f' AS letter, short FROM fact WHERE person IN (SELECT value FROM json_each(:ids))
    UNION ALL SELECT person, audience, 'm', short FROM matter WHERE person IN (SELECT value FROM json_each(:ids))) AS told
WHERE short > 0 GROUP BY person, audience, letter
ON CONFLICT (person, audience, letter) DO UPDATE SET last = max(numbered.last, excluded.last);

-- name: link_gone
DELETE FROM person_link WHERE canonical = :canonical;

-- name: series_speaker
-- The person whose message led to a portrait's first version that a turn wrote.
SELECT t.person FROM user_model m JOIN revision r ON r.id = m.revision JOIN turn t ON t.turn = r.turn
WHERE m.person = :person AND m.audience = :audience ORDER BY m.version LIMIT 1;

-- name: series_merged
-- The first version that also holds another id's portrait; it was written by `link`, not by a turn.
SELECT min(m.version) AS version FROM user_model m JOIN revision r ON r.id = m.revision
WHERE m.person = :person AND m.audience = :audience AND r.turn IS NULL AND r.author = 'owner'
  AND r.note IN (SELECT value FROM json_each(:notes));

-- name: series_cut
DELETE FROM user_model WHERE person = :person AND audience = :audience AND version >= :version;

-- name: series_in_force
UPDATE user_model SET newest = 1 WHERE person = :person AND audience = :audience AND version = (
    SELECT max(version) FROM user_model WHERE person = :person AND audience = :audience);

-- name: turns_showing
-- scans: an unlinking reads everything once
SELECT turn, shown, nonce FROM turn WHERE audience IN (SELECT value FROM json_each(:labels)) OR EXISTS (
    SELECT 1 FROM json_each(shown) s WHERE json_extract(s.value, '$.person') IN (SELECT value FROM json_each(:ids)));

-- name: turn_shows
UPDATE turn SET shown = :shown, nonce = :nonce, edits = edits + 1 WHERE turn = :turn;

-- name: unlink_turns
-- `:network` is empty if the id is not the only one of its network.
-- scans: an unlinking reads everything once
UPDATE turn SET person = :person WHERE person = :canonical AND (
    audience = :label OR turn IN (SELECT turn FROM inbox WHERE person = :person)
    OR (conversation, number) IN (SELECT conversation, number FROM entry WHERE person = :person)
    OR (:network <> '' AND conversation >= :network AND conversation < :until));

-- name: unlink_calls
-- scans: an unlinking reads everything once
UPDATE step SET person = :person
WHERE person = :canonical AND turn IN (SELECT turn FROM turn WHERE person = :person);

-- name: unlink_places
-- scans: an unlinking reads everything once
INSERT INTO conversation_person (conversation, person, turns, last_at)
SELECT conversation, person, count(*), max(at) FROM turn WHERE person = :person GROUP BY conversation, person
ON CONFLICT (conversation, person) DO UPDATE SET turns = max(conversation_person.turns, excluded.turns),
    last_at = max(coalesce(conversation_person.last_at, ''), excluded.last_at);

-- name: unlink_places_left
-- scans: an unlinking reads everything once
DELETE FROM conversation_person
WHERE person = :canonical AND conversation IN (SELECT conversation FROM turn WHERE person = :person)
  AND conversation NOT IN (SELECT conversation FROM turn WHERE person = :canonical);

-- name: unlink_interactions
-- scans: an unlinking reads everything once
UPDATE interaction SET peer_id = :person
WHERE peer_id = :canonical AND turn IN (SELECT turn FROM turn WHERE person = :person);

-- name: unlink_promises
-- scans: an unlinking reads everything once
UPDATE promise SET peer_id = :person
WHERE peer_id = :canonical AND turn IN (SELECT turn FROM turn WHERE person = :person);

-- name: unlink_facts
-- scans: an unlinking reads everything once
UPDATE fact SET person = :person
WHERE person = :canonical AND turn IN (SELECT turn FROM turn WHERE person = :person);

-- name: unlink_matters
-- scans: an unlinking reads everything once
UPDATE matter SET person = :person
WHERE person = :canonical AND turn IN (SELECT turn FROM turn WHERE person = :person);

-- name: unlink_moments
-- scans: an unlinking reads everything once
UPDATE moment SET person = :person
WHERE person = :canonical AND turn IN (SELECT turn FROM turn WHERE person = :person);

-- name: unlink_traces
-- scans: an unlinking reads everything once
UPDATE psyche_trace SET person = :person
WHERE person = :canonical AND turn IN (SELECT turn FROM turn WHERE person = :person);

-- name: audiences_relinked
UPDATE audience SET revision = revision + 1
WHERE audience IN (SELECT audience FROM audience_member WHERE person = :person);

-- name: model_adopt
UPDATE user_model SET person = :canonical WHERE person = :other AND audience = :audience;

-- name: models_own
SELECT DISTINCT audience FROM user_model WHERE person = :person ORDER BY audience;

-- name: archive_file_adopt
UPDATE archive_file SET person = :canonical WHERE person = :other AND audience = :audience;

-- name: model_instant
SELECT r.at FROM user_model m JOIN revision r ON r.id = m.revision
WHERE m.person = :person AND m.audience = :audience AND m.newest = 1;

-- name: revisions_let_go
-- scans: only when the owner unlinks ids, rarely
DELETE FROM revision WHERE id NOT IN (SELECT revision FROM user_model) AND id NOT IN (SELECT revision FROM soul_state);

-- name: every_turn_anew
-- A running turn began with what has changed, so it starts again.
-- scans: one row per conversation
UPDATE conversation SET version = version + 1;

-- name: participations
-- scans: once per start; one row per channel with a setting
SELECT place, mode FROM participation;

-- name: participation_of
SELECT set_by, set_at FROM participation WHERE place = :place;

-- name: participate_here
INSERT INTO participation (place, mode, set_by, set_at) VALUES (:place, :mode, :person, :now)
ON CONFLICT (place) DO UPDATE SET mode = excluded.mode, set_by = excluded.set_by, set_at = excluded.set_at;

-- name: participate_no_more
DELETE FROM participation WHERE place = :place;

-- name: paired
-- scans: once per start; one row per paired person
SELECT person FROM pairing;

-- name: pair
INSERT INTO pairing (person, name, paired_at) VALUES (:person, :name, :now) ON CONFLICT (person) DO NOTHING;

-- name: unpair
DELETE FROM pairing WHERE person = :person;

-- name: wish
INSERT INTO wish (person, proactive, wished_at) VALUES (:person, :proactive, :now)
ON CONFLICT (person) DO UPDATE SET proactive = excluded.proactive, wished_at = excluded.wished_at;

-- name: wished
SELECT proactive FROM wish WHERE person = :person;

-- name: sight
-- The shared places of a network that a person is known to see, and those without a member list.
SELECT a.audience, a.known_at IS NOT NULL AS is_listed, m.person IS NOT NULL AS is_seen FROM audience a
LEFT JOIN audience_member m ON m.audience = a.audience AND m.person = :person
WHERE a.audience > :network AND a.audience < :until
  AND (a.known_at IS NULL OR m.person IS NOT NULL) LIMIT :most;

-- name: sight_gone
DELETE FROM audience_member
WHERE person = :person
  AND EXISTS (SELECT 1 FROM audience a WHERE a.audience = audience_member.audience AND a.known_at IS NULL);

-- name: sight_seen
INSERT INTO audience_member (audience, person)
SELECT audience, :person FROM audience WHERE audience = :audience AND known_at IS NULL ON CONFLICT DO NOTHING;

-- name: hush
INSERT INTO thread (conversation, since, last_at, is_quiet) VALUES (:conversation, :never, :at, 1)
ON CONFLICT (conversation) DO UPDATE SET is_quiet = 1;

-- name: unhush
UPDATE thread SET is_quiet = 0, since = max(since, :position), last_at = :at WHERE conversation = :conversation;

-- name: people_called
-- scans: a command lists everybody, or looks up one name
-- A row a person, or one for each thing that they said of their name.
SELECT coalesce(l.canonical, p.person) AS called, p.name, f.text, f.audience, f.stated_s FROM person p
LEFT JOIN person_link l ON l.person = p.person
LEFT JOIN fact f ON f.person = p.person AND f.kind = 'name' AND f.about = '' AND f.ended_at IS NULL AND f.hidden_at IS NULL ORDER BY p.person;

-- name: moments_counted
-- scans: one person asks, beside the turns
SELECT audience, count(*) AS kept FROM moment
WHERE person IN (SELECT value FROM json_each(:persons)) AND is_own = 0 GROUP BY audience;

-- name: canonical
SELECT canonical FROM person_link WHERE person = :person;

-- name: canonicals
SELECT person, canonical FROM person_link WHERE person IN (SELECT value FROM json_each(:persons));

-- name: linked
-- The other ids of a person, by whichever of them, each with the canonical one; no row if there is only this one.
SELECT person, canonical FROM person_link
WHERE canonical = coalesce((SELECT canonical FROM person_link WHERE person = :person), :person) ORDER BY person;

-- name: audience_known_at
-- Null: there is no member list, and only some of the members are known.
SELECT known_at FROM audience WHERE audience = :audience;

-- name: audience_members
-- No row: nothing is known of it; without a member, one row without a person.
SELECT a.known_at, coalesce(l.canonical, m.person) AS person FROM audience a
LEFT JOIN audience_member m ON m.audience = a.audience LEFT JOIN person_link l ON l.person = m.person
WHERE a.audience = :audience;

-- name: audiences_of_one
-- One JSON array, because a row of its own for each of hundreds costs many times as much.
SELECT json_group_array(audience) AS audiences FROM audience_member WHERE person IN (SELECT value FROM json_each(:ids));

-- name: audiences_of_all
-- The shared audiences with a whole list of members that one person, by any of :ids, and all those :present can see.
SELECT json_group_array(a.audience) AS audiences FROM audience_member m JOIN audience a ON a.audience = m.audience
WHERE m.person IN (SELECT value FROM json_each(:ids)) AND a.known_at IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM json_each(:present) p
    WHERE NOT EXISTS (SELECT 1 FROM audience_member n WHERE n.audience = a.audience AND n.person = p.value)
      AND NOT EXISTS (SELECT 1 FROM person_link l JOIN audience_member n ON n.person = l.person
                      WHERE l.canonical = p.value AND n.audience = a.audience));

-- name: audience_known
INSERT INTO audience (audience, revision, known_at) VALUES (:audience, 1, :now)
ON CONFLICT (audience) DO UPDATE SET revision = audience.revision + 1, known_at = excluded.known_at;

-- name: audience_unlisted
INSERT INTO audience (audience, revision, known_at) VALUES (:audience, 1, NULL)
ON CONFLICT (audience) DO UPDATE SET revision = audience.revision + 1, known_at = NULL;

-- name: audience_joined
INSERT INTO audience_member (audience, person) VALUES (:audience, :person) ON CONFLICT DO NOTHING;

-- name: audience_emptied
DELETE FROM audience_member WHERE audience = :audience;

-- name: codes
SELECT kind, person, name, network, asked_at, about, payload, code, wrong FROM code WHERE kind = :kind;

-- name: code_opened
INSERT INTO code (kind, person, name, network, asked_at, about, payload, code, wrong)
VALUES (:kind, :person, :name, :network, :asked_at, :about, :payload, :code, :wrong)
ON CONFLICT (kind, person) DO UPDATE SET name = excluded.name, network = excluded.network, asked_at = excluded.asked_at,
    about = excluded.about, payload = excluded.payload, code = excluded.code, wrong = excluded.wrong;

-- name: code_closed
DELETE FROM code WHERE kind = :kind AND person = :person;

-- name: codes_right
UPDATE code SET wrong = 0 WHERE kind = :kind;

-- name: codes_wrong
UPDATE code SET wrong = wrong + 1 WHERE kind = :kind;

-- name: codes_void
DELETE FROM code WHERE kind = :kind AND wrong >= :most;

-- name: codes_of_earlier
-- scans: a handful of rows
-- A restart voids what lets somebody in or links accounts; what somebody chooses of their own to be erased outlives it.
DELETE FROM code WHERE kind NOT IN ('forget', 'choice');

-- name: codes_past
-- scans: a handful of rows
DELETE FROM code WHERE asked_at <= :before;
