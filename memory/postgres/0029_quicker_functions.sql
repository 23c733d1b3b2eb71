-- The functions of SQLite as the planner can put them into a statement: one that is STRICT, or has a query of its own, is
-- planned anew each time. They answer as before.
-- oldest: 25

CREATE OR REPLACE FUNCTION max(a text, b text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT CASE WHEN a COLLATE "C" >= b THEN a WHEN a COLLATE "C" < b THEN b END $$;
CREATE OR REPLACE FUNCTION min(a text, b text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT CASE WHEN a COLLATE "C" <= b THEN a WHEN a COLLATE "C" > b THEN b END $$;
CREATE OR REPLACE FUNCTION max(a bigint, b bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT CASE WHEN a >= b THEN a WHEN a < b THEN b END $$;
CREATE OR REPLACE FUNCTION min(a bigint, b bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT CASE WHEN a <= b THEN a WHEN a > b THEN b END $$;

CREATE OR REPLACE FUNCTION json_extract(document text, path text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN path LIKE '$[%' THEN document::json ->> substr(path, 3, length(path) - 3)::int
        ELSE document::json ->> substr(path, 3) END
$$;

CREATE OR REPLACE FUNCTION json_each(document text) RETURNS TABLE (key text, value text) LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 10 AS $$
    SELECT (a.n - 1)::text, a.value
    FROM json_array_elements_text(CASE json_typeof(document::json) WHEN 'array' THEN document::json ELSE '[]' END)
        WITH ORDINALITY AS a (value, n)
    UNION ALL
    SELECT o.key, o.value
    FROM json_each_text(CASE json_typeof(document::json) WHEN 'object' THEN document::json ELSE '{}' END) AS o
$$;
CREATE OR REPLACE FUNCTION json_each(document text, path text) RETURNS TABLE (key text, value text) LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 10
AS $$ SELECT e.key, e.value FROM json_each(coalesce(document::json ->> substr(path, 3), '[]')) AS e $$;

CREATE OR REPLACE FUNCTION json_set(document text, path text, set_to json) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN (SELECT '{' || string_agg(to_json(one.key)::text || ':' || one.value::text, ',' ORDER BY one.n) || '}' FROM (
        SELECT e.n, e.key, CASE WHEN e.key = substr(path, 3) THEN set_to::text ELSE e.value::text END AS value
        FROM json_each(document::json) WITH ORDINALITY AS e (key, value, n)
        UNION ALL
        SELECT 2147483647, substr(path, 3), set_to::text
        WHERE NOT EXISTS (SELECT 1 FROM json_object_keys(document::json) AS k WHERE k = substr(path, 3))
    ) AS one);
END $$;
CREATE OR REPLACE FUNCTION json_set(document text, path text, value text, further text, other json) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN json_set(json_set(document, path, to_json(value)), further, other);
END $$;

CREATE OR REPLACE FUNCTION joined(so_far text, one text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN CASE WHEN so_far IS NULL THEN one WHEN one IS NULL THEN so_far ELSE so_far || ',' || one END;
END $$;
CREATE OR REPLACE FUNCTION joined(so_far text, one text, between_them text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN CASE WHEN so_far IS NULL THEN one WHEN one IS NULL THEN so_far ELSE so_far || between_them || one END;
END $$;
