-- A promise of the soul's own is a plan: the clock brings it up at its time, and delivery closes it.

ALTER TABLE promise ADD COLUMN plan INTEGER;                  -- the row of `due` that brings it up; null = nothing does
CREATE INDEX promise_plan ON promise (plan) WHERE plan IS NOT NULL;
CREATE INDEX due_fired ON due (fired_turn) WHERE fired_turn <> '';

ALTER TABLE due ADD COLUMN in_answer INTEGER NOT NULL DEFAULT 0; -- 1 = planned in a turn that answered somebody: the soul may speak then
