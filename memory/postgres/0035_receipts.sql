-- What a turn really did stands after its words, written by code.
-- oldest: 34

ALTER TABLE outbox ADD COLUMN receipts text COLLATE "C" NOT NULL DEFAULT '[]'; -- one line an act that was booked, shown after the part's words, as JSON
