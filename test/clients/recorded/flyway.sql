-- check: database
SELECT current_database();
-- check: recovery
SELECT pg_is_in_recovery();
-- check: search path
SHOW search_path;
-- check: schema exists
SELECT COUNT(*) FROM pg_namespace WHERE nspname = 'public';
-- check: schema has objects
SELECT EXISTS (
  SELECT c.oid FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_catalog.pg_depend d ON d.objid = c.oid AND d.deptype = 'e'
  WHERE n.nspname = 'public' AND d.objid IS NULL AND c.relkind IN ('r', 'v', 'S', 't')
  UNION ALL
  SELECT t.oid FROM pg_catalog.pg_type t
  JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
  LEFT JOIN pg_catalog.pg_depend d ON d.objid = t.oid AND d.deptype = 'e'
  WHERE n.nspname = 'public' AND d.objid IS NULL AND t.typcategory NOT IN ('A', 'C')
  UNION ALL
  SELECT p.oid FROM pg_catalog.pg_proc p
  JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
  LEFT JOIN pg_catalog.pg_depend d ON d.objid = p.oid AND d.deptype = 'e'
  WHERE n.nspname = 'public' AND d.objid IS NULL
);
-- check: table exists
SELECT EXISTS (
  SELECT 1 FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = 'public' AND c.relname = 'flyway_schema_history' AND c.relkind = 'r'
);
-- check: lock
SELECT pg_try_advisory_lock(77431708279161);
-- check: history table
CREATE TABLE "public"."flyway_schema_history" (
  "installed_rank" INT NOT NULL,
  "version" VARCHAR(50),
  "description" VARCHAR(200) NOT NULL,
  "type" VARCHAR(20) NOT NULL,
  "script" VARCHAR(1000) NOT NULL,
  "checksum" INTEGER,
  "installed_by" VARCHAR(100) NOT NULL,
  "installed_on" TIMESTAMP NOT NULL DEFAULT now(),
  "execution_time" INTEGER NOT NULL,
  "success" BOOLEAN NOT NULL
);
-- check: history key
ALTER TABLE "public"."flyway_schema_history"
  ADD CONSTRAINT "flyway_schema_history_pk" PRIMARY KEY ("installed_rank");
-- check: history index
CREATE INDEX "flyway_schema_history_s_idx" ON "public"."flyway_schema_history" ("success");
-- check: history row
INSERT INTO "public"."flyway_schema_history" ("installed_rank", "version", "description", "type",
  "script", "checksum", "installed_by", "execution_time", "success")
VALUES (1, '1', 'first', 'SQL', 'V1__first.sql', 1, 'admin', 5, true);
-- check: history (rows)
SELECT "installed_rank", "version", "description", "type", "script", "checksum", "installed_by",
  "execution_time", "success"
FROM "public"."flyway_schema_history" WHERE "installed_rank" > 0 ORDER BY "installed_rank";
-- check: unlock
SELECT pg_advisory_unlock(77431708279161);
-- check: end
DROP TABLE "public"."flyway_schema_history" CASCADE;
