-- Lanes and their leases. Times are the server's: no other clock decides who holds a lane.

-- name: worker_begins
INSERT INTO worker (worker, host, home, pid, version, schema, roles, configuration, soul, skew_s)
VALUES (:worker, :host, :home, :pid, :version, :schema, :roles, :configuration, :soul, :wall_s - extract(epoch FROM clock_timestamp()))
ON CONFLICT DO NOTHING;

-- name: workers_before
-- The earlier processes of a home that begins again; not those at work, in case another machine has the same names.
DELETE FROM worker WHERE host = :host AND home = :home AND home <> '' AND worker <> :worker
    AND (clean OR seen_at < clock_timestamp() - make_interval(secs => :lease_s));

-- name: worker_ends
UPDATE worker SET clean = true, seen_at = clock_timestamp() WHERE worker = :worker;

-- name: worker_before
-- The last one that began on this machine: what another machine's left is not this one's to be careful about.
SELECT pid, clean FROM worker WHERE host = :host AND worker <> :worker ORDER BY started_at DESC LIMIT 1;

-- name: workers_shown
SELECT w.worker, w.host, w.pid, w.version, w.roles, w.clean, w.configuration, w.soul, w.skew_s, w.pause_s,
    extract(epoch FROM clock_timestamp() - w.started_at)::float8 AS up_s,
    extract(epoch FROM clock_timestamp() - w.seen_at)::float8 AS seen_s,
    (SELECT count(*) FROM lane l WHERE l.worker = w.worker AND l.lease_until > clock_timestamp()) AS lanes,
    coalesce((SELECT string_agg(role, ' ' ORDER BY role) FROM role r
        WHERE r.worker = w.worker AND r.lease_until > clock_timestamp()), '') AS holds
FROM worker w ORDER BY w.started_at, w.worker;

-- name: lanes_take
UPDATE lane SET token = nextval('lane_token'), worker = :worker, lease_until = clock_timestamp() + make_interval(secs => :lease_s)
FROM (
    SELECT conversation FROM lane
    WHERE ready AND lease_until < clock_timestamp() AND EXISTS (SELECT 1 FROM release WHERE oldest <= :schema)
      AND (split_part(conversation, ':', 4) LIKE '!%' OR NOT EXISTS (
        SELECT 1 FROM unread WHERE network IN (split_part(conversation, ':', 1), CASE WHEN conversation LIKE 'terminal:%' THEN '' ELSE '*' END)
          AND until > clock_timestamp()))
      AND (:networks = '[]' OR split_part(conversation, ':', 1) IN (SELECT value FROM json_each(:networks))
        OR conversation IN (SELECT value FROM json_each(:wanted)))
    ORDER BY since LIMIT :most FOR UPDATE SKIP LOCKED
) AS free WHERE lane.conversation = free.conversation
RETURNING lane.conversation, lane.token, lane.heard;

-- name: lanes_void_heard
-- In the lanes just taken: their tokens are higher than any that this process had before. Also what it began itself under
-- an earlier one: it may have been paused for longer than its lease.
UPDATE inbox SET state = 'pending'
WHERE conversation IN (SELECT conversation FROM lane WHERE worker = :worker AND token > :before) AND state = 'taken';

-- name: lanes_void_said
UPDATE outbox SET state = 'unknown_after_send'
WHERE conversation IN (SELECT conversation FROM lane WHERE worker = :worker AND token > :before) AND state = 'taken';

-- name: lanes_renew
UPDATE lane SET lease_until = clock_timestamp() + make_interval(secs => :lease_s)
WHERE worker = :worker AND lease_until > clock_timestamp() AND token IN (SELECT value::bigint FROM json_each(:tokens))
RETURNING conversation;

-- name: worker_seen
UPDATE worker SET seen_at = clock_timestamp(), pause_s = greatest(pause_s, :pause_s), soul = :soul, configuration = :configuration
WHERE worker = :worker RETURNING draining;

-- name: release_shown
SELECT schema, oldest, (SELECT max(number) FROM soul_push) AS soul FROM release WHERE id = 1;

-- name: lane_fence
SELECT lane_held(:conversation, :token);

-- name: lane_heard
SELECT heard FROM lane WHERE conversation = :conversation AND token = :token;

-- name: lane_release
-- What waited for a history that was being read, or for the soul to go on, is looked at again: `oldest` did not show it.
UPDATE lane SET worker = NULL, ready = split_part(:conversation, ':', 4) NOT LIKE '!%' AND EXISTS (
        SELECT 1 FROM inbox WHERE inbox.conversation = :conversation AND (state = 'pending' OR state = 'taken' OR state = 'thought')),
    lease_until = '-infinity'
WHERE conversation = :conversation AND token = :token AND heard = :heard;

-- name: lane_of_commands_gone
-- The key of a lane of commands ends in the id of a person: none stays once it is given back. A token is never given twice.
DELETE FROM lane WHERE conversation = :conversation AND worker IS NULL AND NOT ready;

-- name: lanes_of_commands_gone
-- Those that nobody holds; the others go when they are given back.
DELETE FROM lane WHERE lease_until < clock_timestamp() AND (split_part(conversation, ':', 1), split_part(conversation, ':', 4)) IN (
    SELECT split_part(value, ':', 1), '!' || regexp_replace(value, '^.*:', '') FROM json_each(:ids));

-- name: network_unread
INSERT INTO unread (network, until) VALUES (:network, clock_timestamp() + make_interval(secs => :unread_s))
ON CONFLICT (network) DO UPDATE SET until = excluded.until;

-- name: network_read
UPDATE unread SET until = '-infinity' WHERE network IN (SELECT value FROM json_each(:networks));

-- name: soul_pauses
-- For every network but the terminal: '*'.
INSERT INTO unread (network, until) VALUES ('*', 'infinity') ON CONFLICT (network) DO UPDATE SET until = excluded.until;

-- name: soul_resumes
DELETE FROM unread WHERE network = '*';

-- name: lanes_resumed
-- Whoever is just giving up a lane in which something waits finds that it did: what was hidden until now became ready.
UPDATE lane SET heard = lane.heard + 1, ready = true FROM (
    SELECT conversation FROM lane WHERE conversation IN (
        SELECT conversation FROM inbox WHERE state = 'pending' OR state = 'taken' OR state = 'thought')
    ORDER BY conversation FOR UPDATE
) AS waiting WHERE lane.conversation = waiting.conversation;

-- name: soul_paused
SELECT EXISTS (SELECT 1 FROM unread WHERE network = '*' AND until > clock_timestamp()) AS paused;

-- name: lane_wanted
INSERT INTO lane (conversation, heard, ready) VALUES (:conversation, 1, true)
ON CONFLICT (conversation) DO UPDATE SET heard = lane.heard + 1, ready = true, since = clock_timestamp() WHERE NOT lane.ready;

-- name: lanes_heard
SELECT conversation, heard FROM lane
WHERE worker = :worker AND token IN (SELECT value::bigint FROM json_each(:tokens));

-- name: turns_given_back
-- Whoever ends in good order did not fail at what it was thinking, or would have tried again.
UPDATE inbox SET boots = boots - 1, boot = NULL
WHERE boot = :worker AND (state = 'pending' OR state = 'taken' OR state = 'thought') AND boots > 0;

-- name: turn_outlived
-- Nor did whoever goes on after its lane was lost in a pause. Another process may have it by now: this is no write of the lane.
UPDATE inbox SET boots = boots - 1, boot = CASE WHEN boot = :worker THEN NULL ELSE boot END
WHERE seq = :seq AND (state = 'pending' OR state = 'taken' OR state = 'thought') AND boots > 0;

-- name: lanes_given_back
UPDATE lane SET worker = NULL, lease_until = '-infinity' WHERE worker = :worker;

-- name: roles_take
UPDATE role SET token = nextval('lane_token'), worker = :worker, lease_until = clock_timestamp() + make_interval(secs => :lease_s)
FROM (
    SELECT role FROM role WHERE lease_until < clock_timestamp() AND role IN (SELECT value FROM json_each(:roles))
    ORDER BY role FOR UPDATE SKIP LOCKED
) AS free WHERE role.role = free.role
RETURNING role.role, role.token;

-- name: roles_known
INSERT INTO role (role) SELECT value FROM json_each(:roles) ON CONFLICT DO NOTHING;

-- name: roles_renew
-- Each role is a list: its name, its token.
UPDATE role SET lease_until = clock_timestamp() + make_interval(secs => :lease_s)
FROM json_each(:roles) AS said
WHERE role.role = json_extract(said.value, '$[0]') AND role.token = json_extract(said.value, '$[1]')::bigint
  AND role.worker = :worker AND role.lease_until > clock_timestamp()
RETURNING role.role;

-- name: roles_give_back
UPDATE role SET worker = NULL, lease_until = '-infinity'
FROM json_each(:roles) AS said
WHERE role.role = json_extract(said.value, '$[0]') AND role.token = json_extract(said.value, '$[1]')::bigint AND role.worker = :worker;

-- name: role_others
SELECT count(*) FROM role WHERE role LIKE :role || '/%' AND worker <> :worker AND lease_until > clock_timestamp();

-- name: roles_left
UPDATE role SET worker = NULL, lease_until = '-infinity' WHERE worker = :worker;

-- name: roles_shown
SELECT role.role, role.worker, worker.host FROM role JOIN worker ON worker.worker = role.worker
WHERE lease_until > clock_timestamp() ORDER BY role.role;

-- name: lanes_held
SELECT EXISTS (SELECT 1 FROM lane WHERE lease_until > clock_timestamp()) AS held;

-- name: round_trip
SELECT 1 AS there;

-- name: server_shown
-- Whether a synchronous standby follows is known only to a user who may see that.
SELECT split_part(current_setting('server_version'), ' ', 1) AS version,
    (SELECT max(sync_state) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')) AS standby;

-- name: lanes_shown
-- A lane waits if something in it is unfinished: one that nobody has looked at again since may be ready without that.
SELECT (SELECT count(*) FROM lane WHERE lease_until > clock_timestamp()) AS held, count(*) AS ready,
    coalesce(extract(epoch FROM clock_timestamp() - min(since)), 0)::float8 AS oldest_wait_s,
    EXISTS (SELECT 1 FROM unread WHERE network = '*' AND until > clock_timestamp()) AS paused
FROM lane WHERE ready AND lease_until <= clock_timestamp() AND (
    EXISTS (SELECT 1 FROM inbox WHERE inbox.conversation = lane.conversation
        AND (inbox.state = 'pending' OR inbox.state = 'taken' OR inbox.state = 'thought'))
    OR EXISTS (SELECT 1 FROM outbox WHERE outbox.conversation = lane.conversation
        AND (outbox.state = 'pending' OR outbox.state = 'taken' OR outbox.state = 'unknown_after_send')));

-- name: letting_go_begins
INSERT INTO letting_go (worker, ids, aliases, conversations, audiences)
SELECT :worker, :ids, :aliases,
    (SELECT coalesce(json_agg(DISTINCT conversation), '[]')::text FROM conversation_person WHERE person IN (SELECT value FROM json_each(:ids))),
    (SELECT coalesce(json_agg(DISTINCT audience), '[]')::text FROM audience_member WHERE person IN (SELECT value FROM json_each(:ids)))
RETURNING number;

-- name: letting_go_waits
-- Who is at work and has not let go yet, and whose erasure began earlier: one at a time. Who did not renew for a whole
-- lease holds nothing any more.
SELECT (SELECT count(*) FROM worker w WHERE NOT w.clean AND w.worker <> :worker
        AND w.seen_at > clock_timestamp() - make_interval(secs => :lease_s)
        AND (NOT EXISTS (SELECT 1 FROM let_go g WHERE g.number = :number AND g.worker = w.worker)
            OR EXISTS (SELECT 1 FROM letting_go l WHERE l.number < :number AND l.worker = w.worker))) AS waiting,
    NOT EXISTS (SELECT 1 FROM letting_go WHERE number = :number) AS is_withdrawn;

-- name: overwriting
SELECT overwriting FROM release WHERE overwriting <> '';

-- name: overwrite_later
UPDATE release SET overwriting = :mark;

-- name: overwritten
UPDATE release SET overwriting = '' WHERE overwriting = :mark;

-- name: workers_beside
SELECT EXISTS (SELECT 1 FROM worker WHERE NOT clean AND worker <> :worker
    AND seen_at > clock_timestamp() - make_interval(secs => :lease_s)) AS found;

-- name: letting_go_ends
-- Also an earlier erasure of the same person that a process left, which this one has done as well.
DELETE FROM letting_go WHERE number = :number OR (
    number < :number AND ids = (SELECT ids FROM letting_go WHERE number = :number)
    AND worker NOT IN (SELECT worker FROM worker WHERE NOT clean AND seen_at > clock_timestamp() - make_interval(secs => :lease_s)));

-- name: letting_go_given_up
UPDATE letting_go SET worker = '' WHERE number = :number AND worker = :worker;

-- name: letting_go_taken_over
-- What a process left that failed, or is at work no more.
UPDATE letting_go SET worker = :worker WHERE number = (
    SELECT min(number) FROM letting_go WHERE worker NOT IN (
        SELECT worker FROM worker WHERE NOT clean AND seen_at > clock_timestamp() - make_interval(secs => :lease_s)))
RETURNING number;

-- name: letting_go_asked
SELECT number, worker, ids, aliases, conversations, audiences, worker IS NOT DISTINCT FROM :worker OR EXISTS (
    SELECT 1 FROM let_go g WHERE g.number = letting_go.number AND g.worker = :worker) AS is_done
FROM letting_go ORDER BY number;

-- name: let_go_now
INSERT INTO let_go (number, worker) SELECT :number, :worker WHERE EXISTS (SELECT 1 FROM letting_go WHERE number = :number)
ON CONFLICT DO NOTHING;

-- name: homes_at_rest
SELECT DISTINCT host, home FROM worker WHERE (host, home) <> (:host, :home) AND (host, home) NOT IN (
    SELECT host, home FROM worker WHERE NOT clean AND seen_at > clock_timestamp() - make_interval(secs => :lease_s))
ORDER BY host, home;

-- name: changed
INSERT INTO changed (name) VALUES (:name) ON CONFLICT (name) DO UPDATE SET number = excluded.number;

-- name: news
SELECT name, number FROM changed WHERE number > :seen;

-- name: whispers_claim
INSERT INTO whisper_claim (whisper, turn, conversation, token)
SELECT id, :turn, :conversation, :token FROM whisper
WHERE id IN (SELECT value::bigint FROM json_each(:whispers)) AND state = 'active'
ON CONFLICT (whisper) DO UPDATE SET turn = excluded.turn, conversation = excluded.conversation, token = excluded.token
WHERE whisper_claim.turn = excluded.turn OR NOT EXISTS (SELECT 1 FROM lane
    WHERE lane.conversation = whisper_claim.conversation AND lane.token = whisper_claim.token AND worker IS NOT NULL)
RETURNING whisper;

-- name: whispers_let_go
DELETE FROM whisper_claim WHERE turn = :turn;

-- name: receipt_of
SELECT receipt FROM outbox WHERE key = :key;

-- name: worker_drains
UPDATE worker SET draining = true WHERE worker = :worker AND NOT clean;

-- name: rates
-- What counts against a message of this person here, as it is before that message.
SELECT count(*) FILTER (WHERE person = :person AND at > clock_timestamp() - interval '1 minute') AS in_minute,
    count(*) FILTER (WHERE person = :person) AS in_day,
    count(*) FILTER (WHERE conversation = :conversation AND at > clock_timestamp() - interval '1 hour') AS in_hour,
    count(*) FILTER (WHERE person = :person AND conversation = :conversation AND at > clock_timestamp() - interval '10 minutes') AS turns,
    coalesce(max(extract(epoch FROM at + interval '1 hour' - clock_timestamp())) FILTER (
        WHERE (shuts = 'person' AND person = :person) OR (shuts = 'conversation' AND conversation = :conversation)), 0)::float8 AS shut_s
FROM rate WHERE (person = :person AND at > clock_timestamp() - interval '1 day')
    OR (conversation = :conversation AND at > clock_timestamp() - interval '1 hour');

-- name: rate_counts
INSERT INTO rate (person, conversation, shuts) VALUES (:person, :conversation, :shuts);

-- name: rate_past
DELETE FROM rate WHERE person = :person AND at < clock_timestamp() - interval '1 day';

-- name: rates_past
DELETE FROM rate WHERE at < clock_timestamp() - interval '1 day';

-- name: not_heard
DELETE FROM inbox WHERE key = :key;

-- name: heard_over_budget
UPDATE inbox SET payload = json_set(payload, '$.extra',
    json_set(payload::json ->> 'extra', '$.over_budget', json('true'))::json) WHERE key = :key;

-- name: early
SELECT payload FROM early WHERE message = :message;

-- name: early_waits
INSERT INTO early (message, person, conversation, payload) VALUES (:message, :person, :conversation, :payload)
ON CONFLICT (message) DO UPDATE SET person = excluded.person, conversation = excluded.conversation, payload = excluded.payload,
    at = clock_timestamp();

-- name: early_applied
DELETE FROM early WHERE message = :message;

-- name: early_past
DELETE FROM early WHERE at < clock_timestamp() - interval '10 minutes';

-- name: access
-- Whether a person was let in by a code, and how the soul takes part in a channel, as every process sees it now.
SELECT EXISTS (SELECT 1 FROM pairing WHERE person = :person) AS paired,
    (SELECT mode FROM participation WHERE place = :place) AS mode;

-- name: rest_begins
INSERT INTO rest (mark, provider, until, kind, why, fix)
VALUES (:mark, :provider, clock_timestamp() + make_interval(secs => :rest_s), :kind, :why, :fix)
ON CONFLICT (mark, provider) DO UPDATE SET until = excluded.until, kind = excluded.kind, why = excluded.why, fix = excluded.fix;

-- name: rests
SELECT mark, provider, extract(epoch FROM until - clock_timestamp())::float8 AS left_s, kind, why, fix
FROM rest WHERE until > clock_timestamp() - make_interval(mins => 1); -- also those that an answer has ended

-- name: rests_void
-- The first process after all had ended asks everybody again, as a restart of the only one does.
DELETE FROM rest WHERE until < clock_timestamp() OR NOT EXISTS (SELECT 1 FROM worker
    WHERE NOT clean AND worker <> :worker AND seen_at > clock_timestamp() - make_interval(secs => :lease_s));

-- name: told_past
-- What this process said, and what those said that are at work no more.
DELETE FROM told WHERE worker = :worker OR worker NOT IN (SELECT worker FROM worker
    WHERE NOT clean AND seen_at > clock_timestamp() - make_interval(secs => :lease_s));

-- name: told_here
INSERT INTO told (worker, problem, grade) VALUES (:worker, :problem, :grade);

-- name: told_elsewhere
SELECT problem, max(grade) AS grade FROM told WHERE worker <> :worker GROUP BY problem;

-- name: booking_begins
INSERT INTO booking (conversation, token, person, usd)
SELECT :conversation, :token, :person, coalesce(max(cost_usd), 0.0) FROM (SELECT cost_usd FROM step ORDER BY at DESC LIMIT 20) AS lately
ON CONFLICT (conversation) DO UPDATE SET token = excluded.token, person = excluded.person, usd = excluded.usd;

-- name: booking_ends
DELETE FROM booking WHERE conversation = :conversation;

-- name: booking_fails
-- Under its own token, so that it needs no fence: another process may have the lane, with a booking of its own.
DELETE FROM booking WHERE conversation = :conversation AND token = :token;

-- name: soul_pushed
INSERT INTO soul_push (sha256, host) VALUES (:sha256, :host) RETURNING number;

-- name: soul_push_file
INSERT INTO soul_file (push, name, content) VALUES (:push, :name, :content);

-- name: soul_push_only
DELETE FROM soul_push WHERE number < :number;

-- name: soul_in_force
SELECT number, sha256, host, to_char(pushed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS at
FROM soul_push ORDER BY number DESC LIMIT 1;

-- name: soul_files
SELECT name, content FROM soul_file WHERE push = :push ORDER BY name;

-- name: notice
SELECT pg_notify('claudius_' || current_schema()::regnamespace::oid, :payload);

-- name: server_clock
SELECT extract(epoch FROM clock_timestamp())::float8 AS server_s;

-- name: server_probed
-- Taken back at once: whether there is room for some pages.
INSERT INTO changed (name) SELECT repeat('probe ', 200) || n FROM generate_series(1, 64) AS n RETURNING number;

-- name: timeline_seen
-- Returns for how many seconds the server has been another one than before; null = it is the same as ever.
WITH seen AS (SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint AS timeline),
switched AS (
    UPDATE release SET timeline = seen.timeline, switched_at = CASE release.timeline WHEN 0 THEN release.switched_at ELSE clock_timestamp() END
    FROM seen WHERE release.timeline <> seen.timeline RETURNING switched_at
)
SELECT extract(epoch FROM clock_timestamp() - nullif(coalesce((SELECT switched_at FROM switched), release.switched_at), '-infinity'))::float8
    AS switched_s FROM release WHERE id = 1;

-- name: outbox_doubted
-- What answers something from before the switch, or was due before, may have been said already.
UPDATE outbox SET state = 'unknown_after_send' WHERE turn = :turn AND state IN ('taken', 'pending') AND EXISTS (
    SELECT 1 FROM inbox JOIN release ON release.id = 1 WHERE inbox.turn = :turn AND json_valid(inbox.payload)
      AND coalesce(inbox.payload::json #>> '{extra,due_at}', inbox.payload::json ->> 'at')::timestamptz
        < release.switched_at + interval '60 s');
