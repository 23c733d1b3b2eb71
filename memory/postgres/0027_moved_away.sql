-- Nothing is written to a server that the soul has left, or is being moved to.
-- oldest: 25

-- release.migrating: 0 = the soul is here; 1 = a move to this server has not finished (or, of an earlier release, the
-- soul has left it); 2 = the soul has left it.
ALTER TABLE release ADD COLUMN move text COLLATE "C" NOT NULL DEFAULT '';  -- which move closed it: only the home that began it may end it
ALTER TABLE release ADD COLUMN mover text COLLATE "C" NOT NULL DEFAULT ''; -- that home, for a person to read

CREATE FUNCTION soul_is_here() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM release WHERE migrating <> 0;
    IF FOUND THEN
        RAISE 'a move has not finished, or the soul has moved away' USING ERRCODE = 'CL002';
    END IF;
END $$;
