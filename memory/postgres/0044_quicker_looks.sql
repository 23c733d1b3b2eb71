-- What somebody is called is looked up in every turn: of 200 facts that read each.
-- oldest: 43
CREATE INDEX fact_name ON fact (person) WHERE kind = 'name' AND about = '' AND ended_at IS NULL AND hidden_at IS NULL;
