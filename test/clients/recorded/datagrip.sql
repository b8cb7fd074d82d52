-- check: version
select version(), current_database(), current_user;
-- check: databases
select N.oid::bigint as id, datname as name, D.description, datistemplate as is_template,
  datallowconn as allow_connections, pg_catalog.pg_get_userbyid(N.datdba) as "owner"
from pg_catalog.pg_database N
left join pg_catalog.pg_shdescription D on N.oid = D.objoid
where N.datname = 'qdb';
-- check: schemas
select N.oid::bigint as id, N.nspname as name, D.description,
  pg_catalog.pg_get_userbyid(N.nspowner) as "owner"
from pg_catalog.pg_namespace N
left join pg_catalog.pg_description D on N.oid = D.objoid
order by case when nspname = current_schema() then -1::bigint else N.oid::bigint end;
-- check: tables
select T.relkind as table_kind, T.relname as table_name, T.oid::bigint as table_id,
  T.relhasindex as has_index, T.relpersistence = 'u' as is_unlogged,
  pg_catalog.pg_get_userbyid(T.relowner) as "owner"
from pg_catalog.pg_class T
where relnamespace = 2200::oid and relkind in ('r', 'm', 'v', 'f', 'p') order by table_kind, table_id;
-- check: columns
with T as (
  select distinct T.oid as table_id, T.relname as table_name
  from pg_catalog.pg_class T, pg_catalog.pg_attribute A
  where T.relnamespace = 2200::oid and T.relkind in ('r', 'm', 'v', 'f', 'p')
    and A.attrelid = T.oid
)
select T.table_id, C.attnum as column_position, C.attname as column_name,
  C.atttypmod as type_mod, pg_catalog.format_type(C.atttypid, C.atttypmod) as type_spec,
  C.attnotnull as mandatory, not C.attislocal as column_is_inherited
from T join pg_catalog.pg_attribute C on T.table_id = C.attrelid
where attnum > 0 order by table_id, attnum;
-- check: indexes
select tab.oid as table_id, tab.relkind as table_kind, ind_stor.relname as index_name,
  ind_head.indexrelid as index_id, ind_head.indisunique as is_unique,
  ind_head.indisprimary as is_primary, ind_head.indnkeyatts as key_count
from pg_catalog.pg_class tab
join pg_catalog.pg_index ind_head on ind_head.indrelid = tab.oid
join pg_catalog.pg_class ind_stor
  on tab.relnamespace = ind_stor.relnamespace and ind_stor.oid = ind_head.indexrelid
where tab.relnamespace = 2200::oid and tab.relkind in ('r', 'm', 'v', 'p')
  and ind_stor.relkind in ('i', 'I');
-- check: constraints
select T.oid as table_id, relkind as table_kind, C.oid::bigint as con_id, conname as con_name,
  contype as con_kind, conkey as con_columns, conindid as index_id, confrelid as ref_table_id,
  condeferrable as is_deferrable, condeferred as is_init_deferred,
  pg_catalog.pg_get_constraintdef(C.oid) as con_expression
from pg_catalog.pg_constraint C join pg_catalog.pg_class T on C.conrelid = T.oid
where relkind in ('r', 'v', 'f', 'p') and relnamespace = 2200::oid
  and contype in ('p', 'u', 'f', 'c', 'x') and connamespace = 2200::oid;
-- check: view sources
select T.relkind as view_kind, T.oid as view_id, pg_catalog.pg_get_viewdef(T.oid, true)
  as source_text
from pg_catalog.pg_class T
join pg_catalog.pg_namespace N on T.relnamespace = N.oid
where N.oid = 2200::oid and T.relkind in ('m', 'v');
-- check: time zones
select name, is_dst from pg_catalog.pg_timezone_names;
