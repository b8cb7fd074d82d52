-- check: schemas
SELECT nspname FROM pg_namespace
WHERE nspname !~ '^pg_toast' AND nspname NOT IN ('information_schema', 'pg_catalog');
-- check: privileges
with table_privileges as (
  select NULL as role, t.schemaname as schema, t.objectname as table,
    pg_catalog.has_any_column_privilege(current_user,
      '"' || t.schemaname || '"' || '.' || '"' || t.objectname || '"', 'update') as update,
    pg_catalog.has_any_column_privilege(current_user,
      '"' || t.schemaname || '"' || '.' || '"' || t.objectname || '"', 'select') as select,
    pg_catalog.has_any_column_privilege(current_user,
      '"' || t.schemaname || '"' || '.' || '"' || t.objectname || '"', 'insert') as insert,
    pg_catalog.has_table_privilege(current_user,
      '"' || t.schemaname || '"' || '.' || '"' || t.objectname || '"', 'delete') as delete
  from (
    select schemaname, tablename as objectname from pg_catalog.pg_tables
    union
    select schemaname, viewname as objectname from pg_catalog.pg_views
    union
    select schemaname, matviewname as objectname from pg_catalog.pg_matviews
  ) t
  where t.schemaname !~ '^pg_' and t.schemaname <> 'information_schema'
    and pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage')
)
select t.* from table_privileges t
where t.select or t.update or t.insert or t.delete;
-- check: tables
SELECT "n"."nspname" AS "schema", "c"."relname" AS "name",
  CASE "c"."relkind" WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE'
    WHEN 'v' THEN 'VIEW' WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW'
    ELSE NULL END AS "type",
  "d"."description" AS "description", "stat"."n_live_tup" AS "estimated_row_count"
FROM "pg_catalog"."pg_class" AS "c"
INNER JOIN "pg_catalog"."pg_namespace" AS "n" ON "c"."relnamespace" = "n"."oid"
LEFT JOIN "pg_catalog"."pg_description" AS "d"
  ON ("c"."oid" = "d"."objoid") AND ("d"."objsubid" = 0)
  AND ("d"."classoid" = 'pg_class'::regclass)
LEFT JOIN "pg_stat_user_tables" AS "stat"
  ON ("n"."nspname" = "stat"."schemaname") AND ("c"."relname" = "stat"."relname")
WHERE ("c"."relnamespace" = "n"."oid") AND ("n"."nspname" !~ '^pg_')
  AND ("n"."nspname" <> 'information_schema') AND c.relkind IN ('r', 'p', 'v', 'f', 'm')
  AND ("n"."nspname" IN ('public'))
ORDER BY "type" ASC, "schema" ASC, "name" ASC;
-- check: columns
SELECT "c"."column_name" AS "name",
  CASE WHEN "c"."udt_schema" IN ('public', 'pg_catalog')
    THEN FORMAT('%s', "c"."udt_name")
    ELSE FORMAT('"%s"."%s"', "c"."udt_schema", "c"."udt_name") END AS "database-type",
  "c"."ordinal_position" - 1 AS "database-position", "c"."table_schema" AS "table-schema",
  "c"."table_name" AS "table-name", "pk"."column_name" IS NOT NULL AS "pk?",
  COL_DESCRIPTION(
    CAST(CAST(FORMAT('%I.%I', CAST("c"."table_schema" AS TEXT), CAST("c"."table_name" AS TEXT))
      AS REGCLASS) AS OID),
    "c"."ordinal_position") AS "field-comment",
  (("c"."column_default" IS NULL) OR (LOWER("c"."column_default") = 'null'))
    AND ("c"."is_nullable" = 'NO')
    AND NOT ((("c"."column_default" IS NOT NULL) AND ("c"."column_default" LIKE '%nextval(%'))
      OR ("c"."is_identity" <> 'NO')) AS "database-required"
FROM "information_schema"."columns" AS "c"
LEFT JOIN (
  SELECT "tc"."table_schema", "tc"."table_name", "kc"."column_name"
  FROM "information_schema"."table_constraints" AS "tc"
  INNER JOIN "information_schema"."key_column_usage" AS "kc"
    ON ("tc"."constraint_name" = "kc"."constraint_name")
    AND ("tc"."table_schema" = "kc"."table_schema")
    AND ("tc"."table_name" = "kc"."table_name")
  WHERE "tc"."constraint_type" = 'PRIMARY KEY'
) AS "pk" ON ("c"."table_schema" = "pk"."table_schema")
  AND ("c"."table_name" = "pk"."table_name") AND ("c"."column_name" = "pk"."column_name")
WHERE c.table_schema !~ '^information_schema|catalog_history|pg_'
  AND ("c"."table_schema" IN ('public'))
ORDER BY "table-schema" ASC, "table-name" ASC, "database-position" ASC;
-- check: foreign keys
SELECT "fk_ns"."nspname" AS "fk-table-schema", "fk_table"."relname" AS "fk-table-name",
  "fk_column"."attname" AS "fk-column-name", "pk_ns"."nspname" AS "pk-table-schema",
  "pk_table"."relname" AS "pk-table-name", "pk_column"."attname" AS "pk-column-name"
FROM "pg_constraint" AS "c"
INNER JOIN "pg_class" AS "fk_table" ON "c"."conrelid" = "fk_table"."oid"
INNER JOIN "pg_namespace" AS "fk_ns" ON "c"."connamespace" = "fk_ns"."oid"
INNER JOIN "pg_attribute" AS "fk_column" ON "c"."conrelid" = "fk_column"."attrelid"
INNER JOIN "pg_class" AS "pk_table" ON "c"."confrelid" = "pk_table"."oid"
INNER JOIN "pg_namespace" AS "pk_ns" ON "pk_table"."relnamespace" = "pk_ns"."oid"
INNER JOIN "pg_attribute" AS "pk_column" ON "c"."confrelid" = "pk_column"."attrelid"
WHERE fk_ns.nspname !~ '^information_schema|catalog_history|pg_'
  AND ("c"."contype" = 'f') AND ("fk_column"."attnum" = ANY(c.conkey))
  AND ("pk_column"."attnum" = ANY(c.confkey))
ORDER BY "fk-table-schema" ASC, "fk-table-name" ASC;
-- check: enums
SELECT nspname, typname FROM pg_type t
INNER JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE t.oid IN (SELECT DISTINCT enumtypid FROM pg_enum e);
-- check: last days
SELECT DATE_TRUNC('day', "public"."rec_readings"."at") AS "at", COUNT(*) AS "count"
FROM "public"."rec_readings"
WHERE ("public"."rec_readings"."at" >= CAST((NOW() + (INTERVAL '-30 day')) AS date))
  AND ("public"."rec_readings"."at" < CAST(NOW() AS date))
GROUP BY DATE_TRUNC('day', "public"."rec_readings"."at")
ORDER BY DATE_TRUNC('day', "public"."rec_readings"."at") ASC;
-- check: fingerprint
SELECT SUBSTRING("public"."rec_readings"."note", 1, 1234) AS "substring1",
  "public"."rec_readings"."at" AS "at" FROM "public"."rec_readings" LIMIT 10000;
-- check: current user
SELECT current_user;
-- check: time zone
show timezone;
