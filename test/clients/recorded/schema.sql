-- check: table
CREATE TABLE rec_readings (
  at TIMESTAMP NOT NULL, sensor VARCHAR(20) NOT NULL, value DOUBLE PRECISION DEFAULT 1.5,
  n INTEGER, big BIGINT, flag BOOLEAN, amount NUMERIC(12, 3), note TEXT,
  PRIMARY KEY (at, sensor)
);
-- check: view
CREATE VIEW rec_hourly AS SELECT sensor, count(*) AS n FROM rec_readings GROUP BY sensor;
-- check: rows
INSERT INTO rec_readings VALUES
  ('2026-01-01 10:00:00', 'north', 1.5, 1, 10, true, 1.250, 'first'),
  ('2026-01-01 10:30:00', 'south', 2.5, 2, 20, false, 2.500, null),
  ('2026-01-01 11:00:00', 'north', 3.5, 3, 30, true, 3.750, 'last');
