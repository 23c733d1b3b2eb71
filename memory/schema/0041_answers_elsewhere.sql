-- What the soul answered in a session of Claude Code has no post: its words stand with its moment, and are found.
DROP VIEW moment_said;
CREATE VIEW moment_said AS
    SELECT id, turn, position, at_s, person, name, conversation, audience, pictures, importance, is_own, CASE is_own
        WHEN 0 THEN text
        ELSE coalesce((SELECT group_concat(body, char(10)) FROM outbox WHERE outbox.turn = moment.turn), text)
    END AS text, (SELECT number FROM moment_audience WHERE moment_audience.audience = moment.audience) AS audience_number FROM moment;
INSERT INTO moment (turn, position, at_s, person, name, conversation, audience, text, pictures, importance, is_own)
SELECT t.turn, '', CAST(strftime('%s', e.at) AS INTEGER), t.person, '', e.conversation, e.audience, substr(e.content, 1, 2000), '', 35, 1
FROM entry e JOIN turn t ON t.conversation = e.conversation AND t.number = e.number
WHERE e.entry_type = 'externalDialog' AND e.metadata LIKE '%"elsewhere"%' AND e.content <> '';
