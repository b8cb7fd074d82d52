-- check: namespaces
SELECT namespace.nspname as namespace_name FROM pg_namespace as namespace
WHERE namespace.nspname = ANY (ARRAY['public']) ORDER BY namespace_name;
-- check: tables
SELECT tbl.relname AS table_name, namespace.nspname as namespace,
  (tbl.relhassubclass and tbl.relkind = 'p') as is_partition,
  (tbl.relhassubclass and tbl.relkind = 'r') as has_subclass,
  tbl.relrowsecurity as has_row_level_security, reloptions,
  obj_description(tbl.oid, 'pg_class') as description
FROM pg_class AS tbl
INNER JOIN pg_namespace AS namespace ON namespace.oid = tbl.relnamespace
WHERE tbl.relkind IN ('r', 'p') AND namespace.nspname = ANY (ARRAY['public'])
ORDER BY namespace, table_name;
-- check: views
SELECT views.viewname AS view_name, views.definition AS view_sql, views.schemaname AS namespace,
  obj_description(class.oid, 'pg_class') AS description
FROM pg_catalog.pg_views views
INNER JOIN pg_catalog.pg_namespace ns ON views.schemaname = ns.nspname
INNER JOIN pg_catalog.pg_class class
  ON class.relnamespace = ns.oid AND class.relname = views.viewname
WHERE schemaname = ANY (ARRAY['public']);
-- check: columns
SELECT oid.namespace, info.table_name, info.column_name,
  format_type(att.atttypid, att.atttypmod) as formatted_type, info.numeric_precision,
  info.numeric_scale, info.numeric_precision_radix, info.datetime_precision, info.data_type,
  info.udt_schema as type_schema_name, info.udt_name as full_data_type,
  pg_get_expr(attdef.adbin, attdef.adrelid) AS column_default, info.is_nullable,
  info.is_identity, info.character_maximum_length,
  col_description(att.attrelid, ordinal_position) AS description
FROM information_schema.columns info
JOIN pg_attribute att ON att.attname = info.column_name
JOIN (
  SELECT pg_class.oid, relname, pg_namespace.nspname as namespace
  FROM pg_class JOIN pg_namespace on pg_namespace.oid = pg_class.relnamespace
    AND pg_namespace.nspname = ANY (ARRAY['public'])
  WHERE reltype > -1
) as oid on oid.oid = att.attrelid AND relname = info.table_name
  AND namespace = info.table_schema
LEFT OUTER JOIN pg_attrdef attdef ON attdef.adrelid = att.attrelid
  AND attdef.adnum = att.attnum AND table_schema = namespace
WHERE table_schema = ANY (ARRAY['public']) AND att.attnum > 0
ORDER BY namespace, table_name, ordinal_position;
-- check: lock of migrate
SELECT pg_advisory_lock(72707369);
-- check: unlock of migrate
SELECT pg_advisory_unlock(72707369);
-- check: version
SELECT version();
-- check: exists
SELECT EXISTS(SELECT 1 FROM pg_namespace WHERE nspname = 'public'), version(),
  current_setting('server_version_num')::integer as numeric_version;
