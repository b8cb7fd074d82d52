-- check: tables
select TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE from INFORMATION_SCHEMA.tables
where TABLE_SCHEMA not in ('information_schema', 'pg_catalog')
order by TABLE_SCHEMA, TABLE_NAME;
-- check: character set
select character_set_name from INFORMATION_SCHEMA.character_sets;
-- check: columns
select COLUMN_NAME, ORDINAL_POSITION, IS_NULLABLE,
  case when (data_type like '%unsigned%') then DATA_TYPE || ' unsigned' else DATA_TYPE end
    as DATA_TYPE
from INFORMATION_SCHEMA.columns
where TABLE_SCHEMA = 'public' and TABLE_NAME = 'rec_readings'
order by TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION;
-- check: foreign keys to the table
select pkcol.COLUMN_NAME as PK_COLUMN_NAME, fkcol.TABLE_SCHEMA AS FK_TABLE_SCHEMA,
  fkcol.TABLE_NAME AS FK_TABLE_NAME, fkcol.COLUMN_NAME as FK_COLUMN_NAME,
  fkcol.ORDINAL_POSITION as ORDINAL,
  fkcon.CONSTRAINT_SCHEMA || '_' || fkcol.TABLE_NAME || '_' || 'rec_readings' || '_' ||
    fkcon.CONSTRAINT_NAME as FK_NAME
from (select distinct constraint_catalog, constraint_schema, unique_constraint_schema,
    constraint_name, unique_constraint_name
  from INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS) fkcon
inner join INFORMATION_SCHEMA.KEY_COLUMN_USAGE fkcol
  on fkcon.CONSTRAINT_SCHEMA = fkcol.CONSTRAINT_SCHEMA
  and fkcon.CONSTRAINT_NAME = fkcol.CONSTRAINT_NAME
inner join INFORMATION_SCHEMA.KEY_COLUMN_USAGE pkcol
  on fkcon.UNIQUE_CONSTRAINT_SCHEMA = pkcol.CONSTRAINT_SCHEMA
  and fkcon.UNIQUE_CONSTRAINT_NAME = pkcol.CONSTRAINT_NAME
where pkcol.TABLE_SCHEMA = 'public' and pkcol.TABLE_NAME = 'rec_readings'
  and pkcol.ORDINAL_POSITION = fkcol.ORDINAL_POSITION
order by FK_NAME, fkcol.ORDINAL_POSITION;
-- check: keys (rows)
select i.CONSTRAINT_SCHEMA || '_' || i.CONSTRAINT_NAME as INDEX_NAME, ii.COLUMN_NAME,
  ii.ORDINAL_POSITION,
  case when i.CONSTRAINT_TYPE = 'PRIMARY KEY' then 'Y' else 'N' end as PRIMARY_KEY
from INFORMATION_SCHEMA.table_constraints i
inner join INFORMATION_SCHEMA.key_column_usage ii
  on i.CONSTRAINT_SCHEMA = ii.CONSTRAINT_SCHEMA and i.CONSTRAINT_NAME = ii.CONSTRAINT_NAME
  and i.TABLE_SCHEMA = ii.TABLE_SCHEMA and i.TABLE_NAME = ii.TABLE_NAME
where i.TABLE_SCHEMA = 'public' and i.TABLE_NAME = 'rec_readings'
  and i.CONSTRAINT_TYPE in ('PRIMARY KEY', 'UNIQUE')
order by i.CONSTRAINT_SCHEMA || '_' || i.CONSTRAINT_NAME, ii.TABLE_SCHEMA, ii.TABLE_NAME,
  ii.ORDINAL_POSITION;
-- check: first rows (rows)
select "$Table"."sensor" as "sensor", "$Table"."n" as "n"
from "public"."rec_readings" "$Table" order by "$Table"."at" limit 1000;
-- check: folded aggregation (rows)
select "rows"."sensor" as "sensor", sum("rows"."value") as "total"
from (select "sensor", "value" from "public"."rec_readings" "$Table") "rows"
group by "sensor" order by "sensor" limit 1000001;
