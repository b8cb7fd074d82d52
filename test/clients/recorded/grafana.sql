-- check: version
SELECT current_setting('server_version_num')::int / 100 AS version;
-- check: table picker
SELECT quote_ident(table_name) AS "table" FROM information_schema.tables
WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog',
  '_timescaledb_cache', '_timescaledb_catalog', '_timescaledb_internal', '_timescaledb_config',
  'timescaledb_information', 'timescaledb_experimental')
AND quote_ident(table_schema) IN (
  SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
  FROM generate_series(array_lower(
    string_to_array(current_setting('search_path'), ','), 1),
    array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i,
  string_to_array(current_setting('search_path'), ',') s);
-- check: column picker (rows)
SELECT quote_ident(column_name) AS "column", data_type AS "type"
FROM information_schema.columns WHERE quote_ident(table_name) = 'rec_readings'
ORDER BY ordinal_position;
-- check: time columns (rows)
SELECT column_name FROM information_schema.columns
WHERE table_name = 'rec_readings' AND udt_name IN ('timestamptz', 'timestamp')
ORDER BY ordinal_position LIMIT 1;
-- check: series in groups of an hour (rows)
SELECT floor(extract(epoch from at) / 3600) * 3600 AS "time", sensor AS metric,
  avg(value) AS "value"
FROM rec_readings
WHERE at BETWEEN '2026-01-01T00:00:00Z' AND '2026-01-02T00:00:00Z'
GROUP BY 1, 2 ORDER BY 1, 2;
-- check: series by epoch
SELECT extract(epoch from at) AS "time", value FROM rec_readings
WHERE extract(epoch from at) >= 1767225600 AND extract(epoch from at) <= 1767312000
ORDER BY 1;
-- check: variable (rows)
SELECT DISTINCT sensor FROM rec_readings ORDER BY 1;
