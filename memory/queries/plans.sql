-- `store.plans`: the soul's plans, and the scheduler's jobs.

-- name: jobs
-- scans: one row per job
SELECT job, next_due, failures FROM job;

-- name: job_armed
INSERT INTO job (job, next_due) VALUES (:job, :next_due)
ON CONFLICT (job) DO UPDATE SET next_due = excluded.next_due;

-- name: job_gone
DELETE FROM job WHERE job = :job;

-- name: job_rung
UPDATE job SET next_due = :next_due WHERE job = :job AND next_due = :due;

-- name: job_waits
SELECT 1 FROM inbox WHERE conversation = :conversation AND (state = 'pending' OR state = 'taken' OR state = 'thought') LIMIT 1;

-- name: job_ended
UPDATE job SET started_at = :started_at, ended_at = :ended_at, outcome = :outcome, failures = :failures WHERE job = :job;

-- name: plan_new
-- A pending plan with the same key stays unchanged; once it was heard or has lapsed, it is armed again.
INSERT INTO due (id, kind, scheduled_for, conversation, key, process, params, text, audience, person, asked_by, in_answer,
    made_as)
VALUES (:id, :kind, :at, :conversation, :key, :process, :params, :text, :audience, :person, :asked_by, :in_answer, :made_as)
ON CONFLICT (conversation, key) DO UPDATE SET kind = excluded.kind, scheduled_for = excluded.scheduled_for,
    process = excluded.process, params = excluded.params, text = excluded.text, audience = excluded.audience,
    person = excluded.person, asked_by = excluded.asked_by, in_answer = excluded.in_answer,
    made_as = excluded.made_as, fired_turn = NULL, lapsed_at = NULL, state = 'waiting', why = ''
WHERE fired_turn IS NOT NULL
ON CONFLICT DO NOTHING;

-- name: number_next
INSERT INTO numbered (person, audience, letter, last) VALUES (:person, :audience, :letter, 1)
ON CONFLICT (person, audience, letter) DO UPDATE SET last = numbered.last + 1 RETURNING last;

-- name: plan_booked
INSERT INTO due (id, kind, scheduled_for, first_at, zone, repeat, until, conversation, params, text, audience, person,
    asked_by, short, made_as, made_by)
VALUES (:id, :kind, :at, :first_at, :zone, :repeat, :until, :conversation, :params, :text, :audience, :person,
    :asked_by, :short, :made_as, :made_by);

-- name: plan_here
SELECT id, short, scheduled_for, first_at, zone, repeat, until, text, audience, person, made_as, fired_turn FROM due
WHERE id = :id;

-- name: plan_moved
UPDATE due SET scheduled_for = :at, first_at = :first_at, zone = :zone, repeat = :repeat, until = :until WHERE id = :id;

-- name: plan_next_time
-- A repetition: this instance becomes a perception, and the plan waits for the next.
UPDATE due SET scheduled_for = :at WHERE id = :id AND fired_turn IS NULL;

-- name: plan_inherits
-- A plan that was put off keeps what people call it by.
UPDATE due SET short = before.short, zone = before.zone, first_at = before.first_at, made_by = before.made_by
FROM (SELECT short, zone, first_at, made_by FROM due WHERE id = :before AND fired_turn IS NOT NULL) AS before
WHERE due.id = :id;

-- name: plans_of_speaker
SELECT id, short, scheduled_for, zone, repeat, until, text, made_as, conversation FROM due
WHERE audience = :audience AND person IN (SELECT value FROM json_each(:persons)) AND fired_turn IS NULL AND short > 0;

-- name: zone_told
UPDATE person SET set_zone = :zone WHERE person IN (SELECT value FROM json_each(:ids));

-- name: plans_open
SELECT count(*) AS plans FROM due WHERE conversation = :conversation AND fired_turn IS NULL;

-- name: plans_at
-- What was asked for there for somebody and the same minute already.
SELECT id, text FROM due WHERE conversation = :conversation AND scheduled_for >= :minute AND scheduled_for < :minute || '~'
  AND fired_turn IS NULL AND short > 0 AND person = :person;

-- name: plan_twin
-- What waits there with the same words for the same minute.
SELECT id FROM due WHERE conversation = :conversation AND scheduled_for >= :minute AND scheduled_for < :minute || '~'
  AND fired_turn IS NULL AND text = :text AND text <> '' AND coalesce(process, '') = :process AND params = :params LIMIT 1;

-- name: plan_waits
SELECT 1 FROM due WHERE conversation = :conversation AND key = :key AND fired_turn IS NULL;

-- name: plan_cancel
-- Its number is never given again, so the row stays; what it was about goes.
UPDATE due SET fired_turn = '', lapsed_at = NULL, state = 'cancelled', why = :why, text = '', params = '{}'
WHERE id = :id AND (fired_turn IS NULL OR lapsed_at IS NOT NULL);

-- name: plans_close
UPDATE due SET fired_turn = '', state = 'cancelled', why = 'the conversation was ended', text = '', params = '{}'
WHERE conversation = :conversation AND fired_turn IS NULL;

-- name: plans_for
-- scans: what waits; one person asks
SELECT id, short, scheduled_for AS at, conversation, audience, params FROM due
WHERE fired_turn IS NULL AND person IN (SELECT value FROM json_each(:persons)) ORDER BY scheduled_for, id;

-- name: undertaken
-- scans: a person who is missed, four times a day
-- What the soul undertook for a person in exactly this audience and has not done.
SELECT text FROM due WHERE person IN (SELECT value FROM json_each(:persons)) AND audience = :audience AND made_as <> ''
    AND repeat = '' AND state = 'waiting' ORDER BY scheduled_for LIMIT 1;

-- name: plans_due
SELECT d.id, d.kind, d.scheduled_for, d.first_at, d.zone, d.repeat, d.until, d.conversation, d.process, d.params, d.text,
    d.audience, d.person, d.asked_by, d.in_answer, d.made_as, c.closed_at
FROM due d LEFT JOIN conversation c ON c.conversation = d.conversation
WHERE d.fired_turn IS NULL AND d.scheduled_for <= :now ORDER BY d.scheduled_for LIMIT :most;

-- name: plan_next
SELECT scheduled_for FROM due WHERE fired_turn IS NULL ORDER BY scheduled_for LIMIT 1;

-- name: plan_fired
UPDATE due SET fired_turn = :turn, lapsed_at = :lapsed_at, state = :state, why = :why WHERE id = :id AND fired_turn IS NULL;

-- name: heard_out
-- Perceptions that wait in a conversation that the soul ends and that are owed nothing.
UPDATE inbox SET state = 'settled', reason = 'heard', settled_at = :now,
    payload = CASE WHEN json_valid(payload)
        THEN json_set(payload, '$.text', '', '$.extra', json('{}')) ELSE '{"text":""}' END
WHERE conversation = :conversation AND owes = 0 AND (state = 'pending' OR state = 'taken' OR state = 'thought') AND key <> :key;

-- name: participate
UPDATE conversation SET participation = nullif(:participation, '') WHERE conversation = :conversation;

-- name: close_conversation
UPDATE conversation SET closed_at = :at WHERE conversation = :conversation;

-- name: keep_kept
INSERT INTO kept (conversation, name, value) VALUES (:conversation, :name, :value)
ON CONFLICT (conversation, name) DO UPDATE SET value = excluded.value;
