-- Lanes and their leases. Times are the server's: no other clock decides who holds a lane.

-- name: worker_begins
INSERT INTO worker (worker, host, pid, version, schema, roles, configuration, skew_s)
VALUES (:worker, :host, :pid, :version, :schema, :roles, :configuration, :wall_s - extract(epoch FROM clock_timestamp()))
ON CONFLICT DO NOTHING;

-- name: worker_ends
UPDATE worker SET clean = true, seen_at = clock_timestamp() WHERE worker = :worker;

-- name: workers_shown
SELECT w.worker, w.host, w.pid, w.version, w.roles, w.clean, w.configuration, w.skew_s, w.pause_s,
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
      AND (split_part(conversation, ':', 4) LIKE '!%'
        OR NOT EXISTS (SELECT 1 FROM unread WHERE network = split_part(conversation, ':', 1) AND until > clock_timestamp()))
      AND (:networks = '[]' OR split_part(conversation, ':', 1) IN (SELECT value FROM json_each(:networks))
        OR conversation IN (SELECT value FROM json_each(:wanted)))
    ORDER BY since LIMIT :most FOR UPDATE SKIP LOCKED
) AS free WHERE lane.conversation = free.conversation
RETURNING lane.conversation, lane.token, lane.heard;

-- name: lane_void_heard
UPDATE inbox SET state = 'pending' WHERE conversation = :conversation AND state = 'taken' AND boot IS DISTINCT FROM :worker;

-- name: lane_void_said
UPDATE outbox SET state = 'unknown_after_send'
WHERE conversation = :conversation AND state = 'taken' AND boot IS DISTINCT FROM :worker;

-- name: lanes_renew
UPDATE lane SET lease_until = clock_timestamp() + make_interval(secs => :lease_s)
WHERE worker = :worker AND lease_until > clock_timestamp() AND token IN (SELECT value::bigint FROM json_each(:tokens))
RETURNING conversation;

-- name: worker_seen
UPDATE worker SET seen_at = clock_timestamp(), pause_s = greatest(pause_s, :pause_s) WHERE worker = :worker RETURNING draining;

-- name: release_shown
SELECT schema, oldest FROM release WHERE id = 1;

-- name: lane_fence
SELECT lane_held(:conversation, :token);

-- name: lane_heard
SELECT heard FROM lane WHERE conversation = :conversation AND token = :token;

-- name: lane_release
-- What waits for a history that is being read is looked at again after that.
UPDATE lane SET worker = NULL, ready = EXISTS (
        SELECT 1 FROM unread WHERE network = split_part(:conversation, ':', 1) AND until > clock_timestamp()), lease_until = '-infinity'
WHERE conversation = :conversation AND token = :token AND heard = :heard;

-- name: network_unread
INSERT INTO unread (network, until) VALUES (:network, clock_timestamp() + make_interval(secs => :unread_s))
ON CONFLICT (network) DO UPDATE SET until = excluded.until;

-- name: network_read
UPDATE unread SET until = '-infinity' WHERE network IN (SELECT value FROM json_each(:networks));

-- name: lane_wanted
INSERT INTO lane (conversation, heard, ready) VALUES (:conversation, 1, true)
ON CONFLICT (conversation) DO UPDATE SET heard = lane.heard + 1, ready = true, since = clock_timestamp() WHERE NOT lane.ready;

-- name: lanes_heard
SELECT conversation, heard FROM lane WHERE token IN (SELECT value::bigint FROM json_each(:tokens));

-- name: lanes_given_back
UPDATE lane SET worker = NULL, lease_until = '-infinity' WHERE worker = :worker;

-- name: roles_take
UPDATE role SET token = nextval('lane_token'), worker = :worker, lease_until = clock_timestamp() + make_interval(secs => :lease_s)
FROM (
    SELECT role FROM role WHERE lease_until < clock_timestamp() AND role IN (SELECT value FROM json_each(:roles))
    ORDER BY role FOR UPDATE SKIP LOCKED
) AS free WHERE role.role = free.role
RETURNING role.role, role.token, role.state;

-- name: roles_known
INSERT INTO role (role) SELECT value FROM json_each(:roles) ON CONFLICT DO NOTHING;

-- name: roles_renew
-- Each role is a list: its name, its token, its state.
UPDATE role SET lease_until = clock_timestamp() + make_interval(secs => :lease_s), state = json_extract(said.value, '$[2]')
FROM json_each(:roles) AS said
WHERE role.role = json_extract(said.value, '$[0]') AND role.token = json_extract(said.value, '$[1]')::bigint
  AND role.worker = :worker AND role.lease_until > clock_timestamp()
RETURNING role.role;

-- name: roles_give_back
UPDATE role SET worker = NULL, lease_until = '-infinity', state = json_extract(said.value, '$[2]')
FROM json_each(:roles) AS said
WHERE role.role = json_extract(said.value, '$[0]') AND role.token = json_extract(said.value, '$[1]')::bigint AND role.worker = :worker;

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
SELECT count(*) FILTER (WHERE lease_until > clock_timestamp()) AS held,
    count(*) FILTER (WHERE ready AND lease_until <= clock_timestamp()) AS ready,
    coalesce(extract(epoch FROM clock_timestamp() - min(since) FILTER (WHERE ready AND lease_until <= clock_timestamp())), 0)::float8
        AS oldest_wait_s
FROM lane;

-- name: letting_go_begins
INSERT INTO letting_go (ids, conversations, audiences)
SELECT :ids, (SELECT coalesce(json_agg(DISTINCT conversation), '[]')::text FROM conversation_person WHERE person IN (SELECT value FROM json_each(:ids))),
    (SELECT coalesce(json_agg(DISTINCT audience), '[]')::text FROM audience_member WHERE person IN (SELECT value FROM json_each(:ids)))
RETURNING number;

-- name: letting_go_waits
-- Who is at work and has not let go yet. Who did not renew for a whole lease holds nothing any more.
SELECT count(*) AS waiting FROM worker w WHERE NOT w.clean AND w.worker <> :worker
    AND w.seen_at > clock_timestamp() - make_interval(secs => :lease_s)
    AND NOT EXISTS (SELECT 1 FROM let_go g WHERE g.number = :number AND g.worker = w.worker);

-- name: letting_go_ends
DELETE FROM letting_go WHERE number <= :number;

-- name: letting_go_asked
SELECT number, ids, conversations, audiences, EXISTS (
    SELECT 1 FROM let_go g WHERE g.number = letting_go.number AND g.worker = :worker) AS is_done
FROM letting_go ORDER BY number;

-- name: let_go_now
INSERT INTO let_go (number, worker) SELECT :number, :worker WHERE EXISTS (SELECT 1 FROM letting_go WHERE number = :number)
ON CONFLICT DO NOTHING;

-- name: machines_at_rest
SELECT DISTINCT host FROM worker WHERE host <> :host AND host NOT IN (
    SELECT host FROM worker WHERE NOT clean AND seen_at > clock_timestamp() - make_interval(secs => :lease_s)) ORDER BY host;

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
