CREATE TABLE sqlx_notes (id BIGINT PRIMARY KEY, note TEXT, made TIMESTAMP NOT NULL DEFAULT now());
CREATE INDEX sqlx_notes_made ON sqlx_notes (made);
ALTER TABLE sqlx_places ADD COLUMN country TEXT;
