-- The definitions of servers' tools that the owner agreed to: written by `claudius tools`, read by the process that takes turns.

-- name: pins
-- scans: at most 24 tools are offered
SELECT server, tool, sha256, description, schema, class, pinned_by, pinned_at FROM tool_pin ORDER BY server, tool;

-- name: pin
INSERT INTO tool_pin (server, tool, sha256, description, schema, class, pinned_by, pinned_at)
VALUES (:server, :tool, :sha256, :description, :schema, :class, :by, :now);

-- name: unpin
DELETE FROM tool_pin WHERE server = :server;
