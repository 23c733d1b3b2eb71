-- Lanes and their leases. Times are the server's: no other clock decides who holds a lane.

-- name: worker_begins
INSERT INTO worker (worker, host, pid, version, roles) VALUES (:worker, :host, :pid, :version, :roles) ON CONFLICT DO NOTHING;

-- name: worker_ends
UPDATE worker SET clean = true, seen_at = clock_timestamp() WHERE worker = :worker;

-- name: workers_shown
SELECT w.worker, w.host, w.pid, w.version, w.roles, w.clean,
    extract(epoch FROM clock_timestamp() - w.started_at)::float8 AS up_s,
    extract(epoch FROM clock_timestamp() - w.seen_at)::float8 AS seen_s,
    (SELECT count(*) FROM lane l WHERE l.worker = w.worker AND l.lease_until > clock_timestamp()) AS lanes
FROM worker w ORDER BY w.started_at, w.worker;

-- name: lanes_take
UPDATE lane SET token = nextval('lane_token'), worker = :worker, lease_until = clock_timestamp() + make_interval(secs => :lease_s)
FROM (
    SELECT conversation FROM lane
    WHERE ready AND lease_until < clock_timestamp() AND split_part(conversation, ':', 4) NOT LIKE '!%'
      AND NOT EXISTS (SELECT 1 FROM unread WHERE network = split_part(conversation, ':', 1) AND until > clock_timestamp())
      AND (:networks = '[]' OR split_part(conversation, ':', 1) IN (SELECT value FROM json_each(:networks)))
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
UPDATE worker SET seen_at = clock_timestamp() WHERE worker = :worker;

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
UPDATE unread SET until = '-infinity' WHERE network NOT IN (SELECT value FROM json_each(:networks));

-- name: lane_wanted
INSERT INTO lane (conversation, heard, ready) VALUES (:conversation, 1, true)
ON CONFLICT (conversation) DO UPDATE SET heard = lane.heard + 1, ready = true, since = clock_timestamp() WHERE NOT lane.ready;

-- name: lanes_heard
SELECT conversation, heard FROM lane WHERE token IN (SELECT value::bigint FROM json_each(:tokens));

-- name: lanes_given_back
UPDATE lane SET worker = NULL, lease_until = '-infinity' WHERE worker = :worker;

-- name: lanes_held
SELECT EXISTS (SELECT 1 FROM lane WHERE lease_until > clock_timestamp()) AS held;

-- name: changed
INSERT INTO changed (name) VALUES (:name) ON CONFLICT (name) DO UPDATE SET times = changed.times + 1;

-- name: changes
SELECT coalesce((SELECT times FROM changed WHERE name = :name), 0) AS times;

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
