-- What a turn really did stands after its words, written by code.

ALTER TABLE outbox ADD COLUMN receipts TEXT NOT NULL DEFAULT '[]'; -- JSON: one line an act that was booked, shown after the part's words
