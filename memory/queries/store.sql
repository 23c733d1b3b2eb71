-- The life of the store: boots, the leases of earlier ones, and what is unfinished.

-- name: boot_open
INSERT INTO boot (boot, started_at, clean) VALUES (:boot, :now, 0);

-- name: boot_last
-- scans: one row
SELECT boot, clean FROM boot ORDER BY n DESC LIMIT 1;

-- name: boot_clean
UPDATE boot SET clean = 1 WHERE boot = :boot;

-- name: inbox_prune
DELETE FROM inbox WHERE settled_at < :before;

-- name: inbox_void_leases
UPDATE inbox SET state = 'pending'
WHERE state <> 'settled' AND state = 'taken' AND coalesce(boot, '') <> :boot;

-- name: outbox_void_leases
UPDATE outbox SET state = 'unknown_after_send'
WHERE seq IN (SELECT seq FROM outbox
    WHERE (state = 'pending' OR state = 'taken' OR state = 'unknown_after_send'))
  AND state = 'taken' AND coalesce(boot, '') <> :boot;

-- name: inbox_void_waits
UPDATE inbox SET not_before = NULL
WHERE seq IN (SELECT seq FROM inbox
    WHERE (state = 'pending' OR state = 'taken' OR state = 'thought'))
  AND not_before > :latest;

-- name: outbox_void_waits
UPDATE outbox SET not_before = NULL
WHERE seq IN (SELECT seq FROM outbox
    WHERE (state = 'pending' OR state = 'taken' OR state = 'unknown_after_send'))
  AND not_before > :latest;

-- name: waiting
-- scans: only the unfinished rows, once per start
SELECT conversation, min(since) AS since FROM (
    SELECT conversation, heard_at AS since FROM inbox
    WHERE (state = 'pending' OR state = 'taken' OR state = 'thought')
    UNION ALL
    SELECT conversation, at AS since FROM outbox
    WHERE (state = 'pending' OR state = 'taken' OR state = 'unknown_after_send')
    UNION ALL
    SELECT conversation, started_at AS since FROM tool_call
    WHERE state IN ('waiting', 'approved', 'started') AND state <> 'waiting' AND started_at IS NOT NULL
) AS unfinished GROUP BY conversation ORDER BY since, conversation;
