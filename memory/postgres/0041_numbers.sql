-- Facts and matters are numbered for each audience: a gap tells nobody of what was said elsewhere.
-- oldest: 41

INSERT INTO numbered (person, audience, letter, last)
SELECT t.person, t.audience, t.letter, n.last FROM (
    SELECT DISTINCT person, audience, 'f' AS letter FROM fact
    UNION SELECT DISTINCT person, audience, 'm' FROM matter) t
JOIN numbered n ON n.person = t.person AND n.audience = '' AND n.letter = t.letter WHERE t.audience <> '';
DELETE FROM numbered WHERE audience = '';
