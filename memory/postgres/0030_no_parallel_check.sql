-- A function that catches an error cannot run while several processes of the server share a query: "cannot start
-- subtransactions during a parallel operation". The planner must know.
-- oldest: 25

ALTER FUNCTION json_valid(text) PARALLEL UNSAFE;
