-- check: session
SELECT current_schema(), session_user;
-- check: databases
SELECT db.oid, db.* FROM pg_catalog.pg_database db WHERE datallowconn AND datname = 'qdb';
-- check: keywords
select string_agg(word, ',') from pg_catalog.pg_get_keywords()
where word <> ALL ('{a,abs,absolute,action}'::text[]);
-- check: schemas
SELECT n.oid, n.*, d.description FROM pg_catalog.pg_namespace n
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = n.oid AND d.objsubid = 0
  AND d.classoid = 'pg_namespace'::regclass ORDER BY nspname;
-- check: data types
SELECT t.oid, t.*, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod)
  as base_type_name, d.description
FROM pg_catalog.pg_type t
LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid = t.typelem
LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid = d.objoid
WHERE t.typname IS NOT NULL
  AND (c.relkind IS NULL OR c.relkind = 'c') AND (et.typcategory IS NULL OR et.typcategory <> 'C');
-- check: tables
SELECT c.oid, c.*, d.description, pg_catalog.pg_get_expr(c.relpartbound, c.oid)
  as partition_expr, pg_catalog.pg_get_partkeydef(c.oid) as partition_key
FROM pg_catalog.pg_class c
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0
  AND d.classoid = 'pg_class'::regclass
WHERE c.relnamespace = 2200 AND c.relkind NOT IN ('i', 'I', 'c') ORDER BY relname;
-- check: columns
SELECT c.relname, a.*, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value,
  dsc.description, dep.objid
FROM pg_catalog.pg_attribute a
INNER JOIN pg_catalog.pg_class c ON (a.attrelid = c.oid)
LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid = ad.adrelid AND a.attnum = ad.adnum)
LEFT OUTER JOIN pg_catalog.pg_description dsc
  ON (c.oid = dsc.objoid AND a.attnum = dsc.objsubid)
LEFT OUTER JOIN pg_depend dep on dep.refobjid = a.attrelid AND dep.deptype = 'i'
  and dep.refobjsubid = a.attnum and dep.classid = dep.refclassid
WHERE NOT a.attisdropped AND c.relname = 'rec_readings' ORDER BY a.attnum;
-- check: constraints
SELECT c.oid, c.*, t.relname as tabrelname, rt.relnamespace as refnamespace, d.description,
  case when c.contype = 'c' then substring(pg_get_constraintdef(c.oid), 7) else null end
    consrc_copy
FROM pg_catalog.pg_constraint c
INNER JOIN pg_catalog.pg_class t ON t.oid = c.conrelid
LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid = c.confrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0
  AND d.classoid = 'pg_constraint'::regclass
WHERE t.relname = 'rec_readings' ORDER BY c.oid;
-- check: indexes
SELECT i.*, i.indkey as keys, c.relname, c.relnamespace, c.relam, c.reltablespace,
  tc.relname as tabrelname, dsc.description,
  pg_catalog.pg_get_expr(i.indpred, i.indrelid) as pred_expr,
  pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) as expr,
  pg_catalog.pg_relation_size(i.indexrelid) as index_rel_size,
  pg_catalog.pg_stat_get_numscans(i.indexrelid) as index_num_scans
FROM pg_catalog.pg_index i
INNER JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
INNER JOIN pg_catalog.pg_class tc ON tc.oid = i.indrelid
LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid = dsc.objoid
WHERE i.indrelid = 'rec_readings'::regclass ORDER BY tabrelname, c.relname;
-- check: sequences
SELECT * FROM pg_catalog.pg_sequences WHERE schemaname = 'public';
-- check: extensions
SELECT e.oid, e.extname, n.nspname as schema_name, e.extversion
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace ORDER BY e.oid;
-- check: available extensions
SELECT * FROM pg_catalog.pg_available_extensions ORDER BY name;
-- check: functions
SELECT p.oid, p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid) as arguments
FROM pg_catalog.pg_proc p WHERE p.pronamespace = 2200 ORDER BY p.proname;
-- check: statistics
select c.oid, pg_catalog.pg_total_relation_size(c.oid) as total_rel_size,
  pg_catalog.pg_relation_size(c.oid) as rel_size
FROM pg_class c WHERE c.relnamespace = 2200 AND c.relname = 'rec_readings';
-- check: roles
SELECT a.oid, a.*, pd.description FROM pg_catalog.pg_roles a
LEFT JOIN pg_catalog.pg_shdescription pd ON a.oid = pd.objoid ORDER BY a.rolname;
-- check: view
SELECT pg_catalog.pg_get_viewdef('rec_hourly'::regclass, true);
