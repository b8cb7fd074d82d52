-- check: tables (rows)
SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class
JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p', 'f', 'v'])
  AND pg_catalog.pg_class.relpersistence != 't'
  AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid)
  AND pg_catalog.pg_namespace.nspname != 'pg_catalog'
  AND pg_catalog.pg_class.relname LIKE 'rec!_%' ESCAPE '!'
ORDER BY pg_catalog.pg_class.relname;
-- check: grain of five minutes (rows)
SELECT DATE_TRUNC('minute', at) - INTERVAL '1 minute' * (EXTRACT(MINUTE FROM at)::integer % 5)
  AS __timestamp, sum(value) AS "SUM(value)"
FROM public.rec_readings WHERE at >= '2026-01-01 00:00:00' AND at < '2026-01-02 00:00:00'
GROUP BY DATE_TRUNC('minute', at) - INTERVAL '1 minute' * (EXTRACT(MINUTE FROM at)::integer % 5)
ORDER BY "SUM(value)" DESC LIMIT 10000;
-- check: grain of five seconds (rows)
SELECT DATE_TRUNC('minute', at) + INTERVAL '5 seconds'
  * FLOOR(EXTRACT(SECOND FROM at) / 5) AS __timestamp, sum(value) AS "SUM(value)"
FROM public.rec_readings
GROUP BY DATE_TRUNC('minute', at) + INTERVAL '5 seconds'
  * FLOOR(EXTRACT(SECOND FROM at) / 5) ORDER BY __timestamp LIMIT 10000;
-- check: grain of thirty minutes (rows)
SELECT DATE_TRUNC('hour', at) + INTERVAL '30 minutes'
  * FLOOR(EXTRACT(MINUTE FROM at) / 30) AS __timestamp, sum(value) AS "SUM(value)"
FROM public.rec_readings
GROUP BY DATE_TRUNC('hour', at) + INTERVAL '30 minutes'
  * FLOOR(EXTRACT(MINUTE FROM at) / 30) ORDER BY __timestamp LIMIT 10000;
-- check: grain of a week (rows)
SELECT DATE_TRUNC('week', at) AS __timestamp, sum(value) AS "SUM(value)"
FROM public.rec_readings
GROUP BY DATE_TRUNC('week', at) ORDER BY __timestamp LIMIT 10000;
-- check: grain of a quarter (rows)
SELECT DATE_TRUNC('quarter', at) AS __timestamp, sum(value) AS "SUM(value)"
FROM public.rec_readings
GROUP BY DATE_TRUNC('quarter', at) ORDER BY __timestamp LIMIT 10000;
-- check: grain of a day (rows)
SELECT DATE_TRUNC('day', at) AS __timestamp, sensor AS sensor, avg(value) AS "AVG(value)"
FROM public.rec_readings GROUP BY DATE_TRUNC('day', at), sensor
ORDER BY "AVG(value)" DESC LIMIT 100;
-- check: virtual dataset (rows)
SELECT sensor AS sensor, count(*) AS count
FROM (SELECT * FROM public.rec_readings) AS virtual_table
GROUP BY sensor ORDER BY count DESC LIMIT 1000;
-- check: search path
SHOW search_path;
-- check: estimate
EXPLAIN SELECT * FROM public.rec_readings;
