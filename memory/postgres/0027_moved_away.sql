-- Nothing is written to a server that the soul has left, or is being moved to.
-- oldest: 25

CREATE FUNCTION soul_is_here() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM release WHERE migrating = 1;
    IF FOUND THEN
        RAISE 'a move has not finished, or the soul has moved away' USING ERRCODE = 'CL002';
    END IF;
END $$;
