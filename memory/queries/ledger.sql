-- `store.ledger`: written with each turn, read in parts of bounded size. The cortex's beliefs, lessons and history: each
-- of these tables has few rows, bounded in number.

-- name: peer_counted
SELECT name, is_bot, first_at, last_at, first_in_at, last_in_at, messages, bursts, active_days, last_day, assessments,
    directed_at, NULL AS audience
FROM peer WHERE peer_id = :peer_id;

-- name: peer_put
INSERT INTO peer (peer_id, name, is_bot, first_at, last_at, first_in_at, last_in_at, messages, bursts, active_days,
    last_day, assessments)
VALUES (:peer_id, :name, :is_bot, :first_at, :last_at, :first_in_at, :last_in_at, :messages, :bursts, :active_days,
    :last_day, 0)
ON CONFLICT (peer_id) DO UPDATE SET name = excluded.name, is_bot = excluded.is_bot, first_at = excluded.first_at,
    last_at = excluded.last_at, first_in_at = excluded.first_in_at, last_in_at = excluded.last_in_at,
    messages = excluded.messages, bursts = excluded.bursts, active_days = excluded.active_days,
    last_day = excluded.last_day;

-- name: peer_tallied
-- scans: the counts of one person, in the audiences that may be shown
-- The counts of some audiences together, :here's name first: the columns of `peer_counted`, except `directed_at`. A day
-- in two places is one day, and which days they were is not kept: so the most of any one place.
SELECT coalesce(max(CASE WHEN t.audience = :here AND t.name <> '' THEN t.name END), max(t.name)) AS name, max(t.is_bot) AS is_bot,
    min(t.first_at) AS first_at, max(t.last_at) AS last_at, min(t.first_in_at) AS first_in_at, max(t.last_in_at) AS last_in_at,
    CAST(sum(t.messages) AS BIGINT) AS messages, CAST(sum(t.bursts) AS BIGINT) AS bursts, max(t.active_days) AS active_days,
    max(t.last_day) AS last_day, p.assessments, CAST(:here AS TEXT) AS audience
FROM json_each(:audiences) q CROSS JOIN peer_tally t JOIN peer p ON p.peer_id = t.peer_id
WHERE t.peer_id = :peer_id AND t.audience = q.value GROUP BY p.peer_id, p.assessments;

-- name: peer_counted_here
-- The counts of all audiences together, and those of this one.
SELECT name, is_bot, first_at, last_at, first_in_at, last_in_at, messages, bursts, active_days, last_day, NULL AS audience
FROM peer WHERE peer_id = :peer_id
UNION ALL
SELECT name, is_bot, first_at, last_at, first_in_at, last_in_at, messages, bursts, active_days, last_day, audience
FROM peer_tally WHERE peer_id = :peer_id AND audience = :audience;

-- name: peer_tally_put
INSERT INTO peer_tally (peer_id, audience, name, is_bot, first_at, last_at, first_in_at, last_in_at, messages, bursts,
    active_days, last_day)
VALUES (:peer_id, :audience, :name, :is_bot, :first_at, :last_at, :first_in_at, :last_in_at, :messages, :bursts,
    :active_days, :last_day)
ON CONFLICT (peer_id, audience) DO UPDATE SET name = excluded.name, is_bot = excluded.is_bot,
    first_at = excluded.first_at, last_at = excluded.last_at, first_in_at = excluded.first_in_at,
    last_in_at = excluded.last_in_at, messages = excluded.messages, bursts = excluded.bursts,
    active_days = excluded.active_days, last_day = excluded.last_day;

-- name: interaction_new
INSERT INTO interaction (peer_id, at, direction, channel_type, conversation, audience, turn, scope, preview)
VALUES (:peer_id, :at, :direction, :channel_type, :conversation, :audience, :turn, :scope, :preview)
ON CONFLICT (turn, peer_id, direction) DO NOTHING;

-- name: interaction_taken
UPDATE interaction SET reaction = :reaction WHERE turn = :turn AND direction = 'out';

-- name: evidence_gone
SELECT 1 AS gone FROM json_each(:evidence) e WHERE NOT EXISTS (SELECT 1 FROM interaction WHERE id = CAST(e.value AS BIGINT)) LIMIT 1;

-- name: assessment_new
INSERT INTO assessment (peer_id, info_score, trust, rationale, created_at, author, sources)
VALUES (:peer_id, :info_score, :trust, :rationale, :created_at, :author, :sources) RETURNING id;

-- name: peer_assessed
UPDATE peer SET assessments = assessments + 1 WHERE peer_id = :peer_id;

-- name: assessments_of
SELECT id, info_score, trust, rationale, created_at, author, sources FROM assessment
WHERE peer_id = :peer_id ORDER BY id DESC LIMIT :most;

-- name: assessments_shown
-- The newest of each set of sources that a peer was judged from; the set decides where they may be shown.
-- scans: its own recursion, one step per set of sources
WITH RECURSIVE judged (sources) AS (
    SELECT min(sources) FROM assessment WHERE peer_id = :peer_id
    UNION ALL
    SELECT (SELECT min(a.sources) FROM assessment a WHERE a.peer_id = :peer_id AND a.sources > judged.sources)
    FROM judged WHERE judged.sources IS NOT NULL)
SELECT a.id, a.info_score, a.trust, a.rationale, a.created_at, a.author, a.sources
FROM judged CROSS JOIN assessment a WHERE a.id IN (
    SELECT n.id FROM assessment n WHERE n.peer_id = :peer_id AND n.sources = judged.sources ORDER BY n.id DESC LIMIT :most);

-- name: latest_trust
-- scans: once per start
SELECT peer_id, trust FROM assessment WHERE id IN (SELECT max(id) FROM assessment GROUP BY peer_id);

-- name: peer_audiences
-- Every audience that a peer was heard in, found by jumping along the index.
-- scans: its own recursion, one step per audience
WITH RECURSIVE heard (audience) AS (
    SELECT min(audience) FROM interaction WHERE peer_id = :peer_id
    UNION ALL
    SELECT (SELECT min(i.audience) FROM interaction i WHERE i.peer_id = :peer_id AND i.audience > heard.audience)
    FROM heard WHERE heard.audience IS NOT NULL)
SELECT audience FROM heard WHERE audience IS NOT NULL;

-- name: timeline_of
SELECT id, peer_id, at, direction, channel_type, conversation, audience, turn, scope, preview, reaction FROM interaction
WHERE peer_id = :peer_id AND audience = :audience ORDER BY id DESC LIMIT :most;

-- name: inbound_of
SELECT at, scope, audience FROM interaction WHERE peer_id = :peer_id AND direction = 'in' ORDER BY id DESC LIMIT :most;

-- name: interactions_waiting
-- scans: only what no cycle has seen, once per start
SELECT id, peer_id, at, direction, channel_type, conversation, audience, turn, scope, preview, reaction FROM interaction
WHERE cycle IS NULL ORDER BY id DESC LIMIT :most;

-- name: interactions_newest
SELECT id, peer_id, at, direction, channel_type, conversation, audience, turn, scope, preview, reaction FROM interaction
WHERE id > (SELECT max(id) FROM interaction) - :most ORDER BY id DESC;

-- name: interaction_last
SELECT coalesce(max(id), 0) AS id FROM interaction;

-- name: turn_noted
SELECT 1 FROM interaction WHERE turn = :turn LIMIT 1;

-- name: interactions_seen
UPDATE interaction SET cycle = :cycle
WHERE cycle IS NULL AND audience = :audience AND peer_id = :peer_id AND id <= :upto;

-- name: promises_open
-- scans: the open matters of people, when the second mind looks
SELECT id, person, text, audience, due FROM matter m
WHERE due >= :since AND closed_at IS NULL AND hidden_at IS NULL AND raised_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM promise p WHERE p.turn = m.turn AND p.side = 'theirs' AND p.what = 'm' || m.id)
ORDER BY due, id LIMIT :most;

-- name: promise_broken
-- Without its words, which are the matter's to keep or to lose.
INSERT INTO promise (peer_id, side, what, stems, made_at, due_at, grace_s, state, turn, conversation, audience)
SELECT m.person, 'theirs', 'm' || m.id, '[]', m.opened_at, m.due, 0, 'overdue', m.turn, coalesce(t.conversation, ''), m.audience
FROM matter m LEFT JOIN turn t ON t.turn = m.turn WHERE m.id = :id
ON CONFLICT (turn, side, what) DO NOTHING;

-- name: peer_directed
UPDATE peer SET directed_at = :at WHERE peer_id = :peer_id;

-- name: beliefs
-- scans: twenty rows, and those that the owner disputes
SELECT key, value, rationale, source_cycle, created_at, ttl_minutes, peer_id, sources, audience, state, evidence
FROM belief;

-- name: belief_put
INSERT INTO belief (key, value, rationale, source_cycle, created_at, ttl_minutes, peer_id, sources, audience, state,
    evidence)
VALUES (:key, :value, :rationale, :source_cycle, :created_at, :ttl_minutes, :peer_id, :sources, :audience, :state,
    :evidence)
ON CONFLICT (key, audience) DO UPDATE SET value = excluded.value, rationale = excluded.rationale,
    source_cycle = excluded.source_cycle, created_at = excluded.created_at, ttl_minutes = excluded.ttl_minutes,
    peer_id = excluded.peer_id, sources = excluded.sources, evidence = excluded.evidence
WHERE belief.state <> 'disputed';

-- name: belief_gone
DELETE FROM belief WHERE key = :key AND audience = :audience AND state = 'active';

-- name: belief_state
UPDATE belief SET state = :state WHERE key = :key;

-- name: belief_delete
DELETE FROM belief WHERE key = :key;

-- name: lessons
-- scans: thirty rows, and the candidates of thirty days
SELECT key, value, audience, first_at, last_at, affirmed, sources, peer_id FROM lesson;

-- name: lesson_put
INSERT INTO lesson (key, value, audience, first_at, last_at, affirmed, sources, peer_id)
VALUES (:key, :value, :audience, :first_at, :last_at, :affirmed, :sources, :peer_id)
ON CONFLICT (key, audience) DO UPDATE SET value = excluded.value, last_at = excluded.last_at,
    affirmed = excluded.affirmed, sources = excluded.sources, peer_id = excluded.peer_id;

-- name: lesson_gone
DELETE FROM lesson WHERE key = :key AND audience = :audience;

-- name: reflection_known
SELECT 1 FROM reflection WHERE cycle = :cycle;

-- name: reflection_last
SELECT coalesce(max(cycle), 0) AS cycle FROM reflection;

-- name: reflection_new
INSERT INTO reflection (cycle, at, trigger, audience, outcome, duration_s, summary, sources, assessed, added, reaffirmed,
    expired, directives, evidence, alignment, input_tokens, output_tokens, cost_usd)
VALUES (:cycle, :at, :trigger, :audience, :outcome, :duration_s, :summary, :sources, :assessed, :added, :reaffirmed,
    :expired, :directives, :evidence, :alignment, :input_tokens, :output_tokens, :cost_usd)
ON CONFLICT (cycle) DO NOTHING;

-- name: reflections_newest
-- scans: the requested number of rows
SELECT cycle, at, trigger, audience, outcome, duration_s, summary, sources, assessed, added, reaffirmed, expired,
    directives, evidence, alignment, input_tokens, output_tokens, cost_usd
FROM reflection ORDER BY cycle DESC LIMIT :most;

-- name: reflections_let_go
-- scans: fifty rows and one
DELETE FROM reflection
WHERE cycle <= (SELECT cycle FROM reflection ORDER BY cycle DESC LIMIT 1 OFFSET :most);

-- name: tunings
-- scans: two rows
SELECT trigger, base, value, useful, cycles FROM tuning;

-- name: tuning_put
INSERT INTO tuning (trigger, base, value, useful, cycles) VALUES (:trigger, :base, :value, :useful, :cycles)
ON CONFLICT (trigger) DO UPDATE SET base = excluded.base, value = excluded.value, useful = excluded.useful,
    cycles = excluded.cycles;
