-- A prompt says how long ago the speaker last spoke here.

ALTER TABLE conversation_person ADD COLUMN last_at TEXT; -- when their last turn there was thought; null = before this was kept

UPDATE conversation_person SET last_at = (
    SELECT max(turn.at) FROM turn WHERE turn.conversation = conversation_person.conversation AND turn.person = conversation_person.person
);
