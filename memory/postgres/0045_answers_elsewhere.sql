-- What the soul answered in a session of Claude Code has no post: its words stand with its moment, and are found.
-- oldest: 44

CREATE OR REPLACE VIEW moment_said AS
    SELECT id, turn, position, at_s, person, name, conversation, audience, pictures, importance, is_own, CASE is_own
        WHEN 0 THEN text
        ELSE coalesce((SELECT string_agg(body, chr(10) ORDER BY seq) FROM outbox WHERE outbox.turn = moment.turn), text)
    END AS text, (SELECT number FROM moment_audience WHERE moment_audience.audience = moment.audience) AS audience_number FROM moment;
INSERT INTO moment (turn, position, at_s, person, name, conversation, audience, text, pictures, importance, is_own)
SELECT t.turn, '', CAST(extract(epoch FROM e.at::timestamptz) AS bigint), t.person, '', e.conversation, e.audience, left(e.content, 2000), '', 35, 1
FROM entry e JOIN turn t ON t.conversation = e.conversation AND t.number = e.number
WHERE e.entry_type = 'externalDialog' AND e.metadata LIKE '%"elsewhere"%' AND e.content <> '';
