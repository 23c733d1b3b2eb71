-- What was decided and what was looked at. Nothing edits it; an erasure only replaces the ids of the person.

CREATE TABLE audit (                     -- one row an act: a setting, an approval, an erasure, a portrait read …; no words of people
    id          INTEGER PRIMARY KEY,     -- order of acting
    at          TEXT NOT NULL,           -- when
    who         TEXT NOT NULL,           -- the person id; `files` = whoever may write the home's files; `erased:…` = somebody erased since
    act         TEXT NOT NULL,           -- what: setting, soul, owner, approve, revoke, read, forget …
    target      TEXT NOT NULL,           -- to whom or what: a person id, a setting's key, a soul file; empty = nothing further
    origin      TEXT NOT NULL            -- from where: cli, files, or network:workspace:channel; a direct message is network:workspace
) STRICT;

CREATE TABLE audited (                   -- the settings and soul files in force when they were last compared; one row
    id          INTEGER PRIMARY KEY CHECK (id = 1), -- the one row
    digests     TEXT NOT NULL,           -- JSON: `setting KEY` or `soul FILE` to the start of its SHA-256
    seen        INTEGER NOT NULL         -- the newest act then; a change by a later one is known already
) STRICT;

CREATE TRIGGER audit_stays BEFORE DELETE ON audit BEGIN
    SELECT RAISE(ABORT, 'nothing is deleted from the audit log');
END;

CREATE TRIGGER audit_is_not_edited BEFORE UPDATE ON audit
WHEN NEW.id <> OLD.id OR NEW.at <> OLD.at OR NEW.act <> OLD.act
  OR (NEW.origin <> OLD.origin AND NEW.origin NOT GLOB '*erased*')
  OR (NEW.who <> OLD.who AND NEW.who NOT GLOB '*erased*')
  OR (NEW.target <> OLD.target AND NEW.target NOT GLOB '*erased*')
BEGIN
    SELECT RAISE(ABORT, 'nothing is edited in the audit log');
END;

CREATE TRIGGER audit_is_not_replaced BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id) BEGIN
    SELECT RAISE(ABORT, 'nothing is replaced in the audit log');
END;
