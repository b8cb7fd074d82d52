//! Which catalog tables there are, and their columns.
//!
//! A column is its name, a colon and a letter: `o` and `i` INT (an object's number, a number),
//! `s` SHORT, `l` LONG, `f` FLOAT, `b` BOOLEAN, `p` TIMESTAMP, `t` text, `r` SYMBOL (a function's
//! name, which clients also compare with the number 0), `v` DOUBLE[] (an array of numbers).

/// A catalog table.
pub(crate) struct Layout {
    /// Its number: that of `PostgreSQL` where clients know it by heart.
    pub(crate) oid: i32,
    pub(crate) name: &'static str,
    pub(crate) columns: &'static str,
}

impl Layout {
    /// The columns' names and letters.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let columns = self.columns.split_whitespace();
        columns.map(|column| column.split_once(':').unwrap_or((column, "t")))
    }
}

const fn table(oid: i32, name: &'static str, columns: &'static str) -> Layout {
    Layout { oid, name, columns }
}

const STATIO: &str = "relid:o schemaname:t relname:t heap_blks_read:l heap_blks_hit:l \
     idx_blks_read:l idx_blks_hit:l toast_blks_read:l toast_blks_hit:l tidx_blks_read:l \
     tidx_blks_hit:l";

/// Tables of the schema `pg_catalog`. Those that nothing fills describe what this database has
/// not: indexes of their own, constraints, triggers, comments.
pub(crate) const PG_CATALOG: &[Layout] = &[
    table(
        1247,
        "pg_type",
        "oid:o typname:t typnamespace:o typowner:o typlen:s typbyval:b typtype:t typcategory:t \
         typispreferred:b typisdefined:b typdelim:t typrelid:o typsubscript:t typelem:o \
         typarray:o typinput:r typoutput:r typreceive:r typsend:r typmodin:r typmodout:r \
         typanalyze:r typalign:t typstorage:t typnotnull:b typbasetype:o typtypmod:i typndims:i \
         typcollation:o typdefaultbin:t typdefault:t typacl:t",
    ),
    table(
        1249,
        "pg_attribute",
        "attrelid:o attname:t atttypid:o attstattarget:i attlen:s attnum:s attndims:i \
         attcacheoff:i atttypmod:i attbyval:b attalign:t attstorage:t attcompression:t \
         attnotnull:b atthasdef:b atthasmissing:b attidentity:t attgenerated:t attisdropped:b \
         attislocal:b attinhcount:i attcollation:o attacl:t attoptions:t attfdwoptions:t \
         attmissingval:t",
    ),
    table(
        1255,
        "pg_proc",
        "oid:o proname:t pronamespace:o proowner:o prolang:o procost:f prorows:f provariadic:o \
         prokind:t prosecdef:b proleakproof:b proisstrict:b proretset:b provolatile:t \
         proparallel:t pronargs:s pronargdefaults:s prorettype:o proargtypes:t proallargtypes:t \
         proargmodes:t proargnames:t proargdefaults:t protrftypes:t prosrc:t probin:t \
         prosqlbody:t prosupport:r proconfig:t proacl:t",
    ),
    table(
        1259,
        "pg_class",
        "oid:o relname:t relnamespace:o reltype:o reloftype:o relowner:o relam:o relfilenode:o \
         reltablespace:o relpages:i reltuples:f relallvisible:i reltoastrelid:o relhasindex:b \
         relisshared:b relpersistence:t relkind:t relnatts:s relchecks:s relhasrules:b \
         relhastriggers:b relhassubclass:b relrowsecurity:b relforcerowsecurity:b \
         relispopulated:b relreplident:t relispartition:b relrewrite:o relfrozenxid:i \
         relminmxid:i relacl:t reloptions:t \
         relpartbound:t",
    ),
    table(2615, "pg_namespace", "oid:o nspname:t nspowner:o nspacl:t"),
    table(
        1262,
        "pg_database",
        "oid:o datname:t datdba:o encoding:i datcollate:t datctype:t datistemplate:b \
         datallowconn:b datconnlimit:i datlastsysoid:o datlocprovider:t datfrozenxid:i \
         datminmxid:i dattablespace:o daticulocale:t datcollversion:t datacl:t",
    ),
    table(
        1260,
        "pg_roles",
        "oid:o rolname:t rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b \
         rolreplication:b rolconnlimit:i rolpassword:t rolvaliduntil:p rolbypassrls:b \
         rolconfig:t",
    ),
    table(
        12_001,
        "pg_user",
        "usename:t usesysid:o usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd:t \
         valuntil:p useconfig:t",
    ),
    table(1261, "pg_auth_members", "roleid:o member:o grantor:o admin_option:b"),
    table(2601, "pg_am", "oid:o amname:t amhandler:t amtype:t"),
    table(1213, "pg_tablespace", "oid:o spcname:t spcowner:o spcacl:t spcoptions:t"),
    table(
        3456,
        "pg_collation",
        "oid:o collname:t collnamespace:o collowner:o collprovider:t collisdeterministic:b \
         collencoding:i collcollate:t collctype:t collversion:t",
    ),
    table(
        3079,
        "pg_extension",
        "oid:o extname:t extowner:o extnamespace:o extrelocatable:b extversion:t extconfig:t \
         extcondition:t",
    ),
    table(
        2612,
        "pg_language",
        "oid:o lanname:t lanowner:o lanispl:b lanpltrusted:b lanplcallfoid:o laninline:o \
         lanvalidator:o lanacl:t",
    ),
    table(
        12_002,
        "pg_settings",
        "name:t setting:t unit:t category:t short_desc:t extra_desc:t context:t vartype:t \
         source:t min_val:t max_val:t enumvals:t boot_val:t reset_val:t sourcefile:t \
         sourceline:i pending_restart:b",
    ),
    table(
        12_003,
        "pg_tables",
        "schemaname:t tablename:t tableowner:t tablespace:t hasindexes:b hasrules:b \
         hastriggers:b rowsecurity:b",
    ),
    table(12_004, "pg_views", "schemaname:t viewname:t viewowner:t definition:t"),
    table(
        12_005,
        "pg_stat_user_tables",
        "relid:o schemaname:t relname:t seq_scan:l seq_tup_read:l idx_scan:l idx_tup_fetch:l \
         n_tup_ins:l n_tup_upd:l n_tup_del:l n_tup_hot_upd:l n_live_tup:l n_dead_tup:l \
         n_mod_since_analyze:l n_ins_since_vacuum:l vacuum_count:l autovacuum_count:l \
         analyze_count:l autoanalyze_count:l last_vacuum:p \
         last_autovacuum:p last_analyze:p last_autoanalyze:p",
    ),
    table(12_012, "pg_statio_all_tables", STATIO),
    table(12_013, "pg_statio_user_tables", STATIO),
    table(
        826,
        "pg_default_acl",
        "oid:o defaclrole:o defaclnamespace:o defaclobjtype:t defaclacl:t",
    ),
    table(2604, "pg_attrdef", "oid:o adrelid:o adnum:s adbin:t"),
    table(2609, "pg_description", "objoid:o classoid:o objsubid:i description:t"),
    table(2396, "pg_shdescription", "objoid:o classoid:o description:t"),
    table(
        2610,
        "pg_index",
        "indexrelid:o indrelid:o indnatts:s indnkeyatts:s indisunique:b indisprimary:b \
         indisexclusion:b indimmediate:b indisclustered:b indisvalid:b indcheckxmin:b \
         indisready:b indislive:b indisreplident:b indnullsnotdistinct:b \
         indkey:v indcollation:v indclass:v indoption:v indexprs:t indpred:t",
    ),
    table(12_006, "pg_indexes", "schemaname:t tablename:t indexname:t tablespace:t indexdef:t"),
    table(
        2606,
        "pg_constraint",
        "oid:o conname:t connamespace:o contype:t condeferrable:b condeferred:b convalidated:b \
         conrelid:o contypid:o conindid:o conparentid:o confrelid:o confupdtype:t confdeltype:t \
         confmatchtype:t conislocal:b coninhcount:i connoinherit:b conkey:v confkey:v \
         conpfeqop:v conppeqop:v conffeqop:v confdelsetcols:v conexclop:v conbin:t",
    ),
    table(
        2616,
        "pg_opclass",
        "oid:o opcmethod:o opcname:t opcnamespace:o opcowner:o opcfamily:o \
         opcintype:o opcdefault:b opckeytype:o",
    ),
    table(2600, "pg_aggregate", "aggfnoid:t aggkind:t aggnumdirectargs:s"),
    table(
        3541,
        "pg_range",
        "rngtypid:o rngsubtype:o rngmultitypid:o rngcollation:o rngsubopc:o rngcanonical:t \
         rngsubdiff:t",
    ),
    table(3501, "pg_enum", "oid:o enumtypid:o enumsortorder:f enumlabel:t"),
    table(2611, "pg_inherits", "inhrelid:o inhparent:o inhseqno:i inhdetachpending:b"),
    table(
        3256,
        "pg_policy",
        "oid:o polname:t polrelid:o polcmd:t polpermissive:b polroles:t polqual:t polwithcheck:t",
    ),
    table(
        3381,
        "pg_statistic_ext",
        "oid:o stxrelid:o stxname:t stxnamespace:o stxowner:o stxstattarget:i stxkeys:t stxkind:t",
    ),
    table(
        6104,
        "pg_publication",
        "oid:o pubname:t pubowner:o puballtables:b pubinsert:b pubupdate:b pubdelete:b \
         pubtruncate:b pubviaroot:b",
    ),
    table(6106, "pg_publication_rel", "oid:o prpubid:o prrelid:o prqual:t prattrs:t"),
    table(6237, "pg_publication_namespace", "oid:o pnpubid:o pnnspid:o"),
    table(
        2620,
        "pg_trigger",
        "oid:o tgrelid:o tgparentid:o tgname:t tgfoid:o tgtype:s tgenabled:t tgisinternal:b \
         tgconstrrelid:o tgconstrindid:o tgconstraint:o tgdeferrable:b tginitdeferred:b \
         tgnargs:s tgattr:t tgargs:t tgqual:t tgoldtable:t tgnewtable:t",
    ),
    table(2618, "pg_rewrite", "oid:o rulename:t ev_class:o ev_type:t ev_enabled:t is_instead:b"),
    table(
        2224,
        "pg_sequence",
        "seqrelid:o seqtypid:o seqstart:l seqincrement:l seqmax:l seqmin:l seqcache:l seqcycle:b",
    ),
    table(
        12_021,
        "pg_sequences",
        "schemaname:t sequencename:t sequenceowner:t data_type:t start_value:l min_value:l \
         max_value:l increment_by:l cycle:b cache_size:l last_value:l",
    ),
    table(
        12_022,
        "pg_available_extensions",
        "name:t default_version:t installed_version:t comment:t",
    ),
    table(
        2607,
        "pg_conversion",
        "oid:o conname:t connamespace:o conowner:o conforencoding:i contoencoding:i conproc:t \
         condefault:b",
    ),
    table(2605, "pg_cast", "oid:o castsource:o casttarget:o castfunc:o castcontext:t castmethod:t"),
    table(
        3466,
        "pg_event_trigger",
        "oid:o evtname:t evtevent:t evtowner:o evtfoid:o evtenabled:t evttags:t",
    ),
    table(3602, "pg_ts_config", "oid:o cfgname:t cfgnamespace:o cfgowner:o cfgparser:o"),
    table(
        12_007,
        "pg_matviews",
        "schemaname:t matviewname:t matviewowner:t tablespace:t hasindexes:b ispopulated:b \
         definition:t",
    ),
    table(
        2608,
        "pg_depend",
        "classid:o objid:o objsubid:i refclassid:o refobjid:o refobjsubid:i deptype:t",
    ),
    table(3118, "pg_foreign_table", "ftrelid:o ftserver:o ftoptions:t"),
    table(
        1417,
        "pg_foreign_server",
        "oid:o srvname:t srvowner:o srvfdw:o srvtype:t srvversion:t srvacl:t srvoptions:t",
    ),
    table(12_008, "pg_locks", "locktype:t database:o relation:o page:i pid:i mode:t granted:b"),
    table(
        12_009,
        "pg_cursors",
        "name:t statement:t is_holdable:b is_binary:b is_scrollable:b creation_time:p",
    ),
    table(
        12_011,
        "pg_stat_activity",
        "datid:o datname:t pid:l leader_pid:l usesysid:o usename:t application_name:t \
         client_addr:t client_hostname:t client_port:i backend_start:p xact_start:p \
         query_start:p state_change:p wait_event_type:t wait_event:t state:t backend_xid:l \
         backend_xmin:l query_id:l query:t backend_type:t",
    ),
    table(12_010, "pg_timezone_names", "name:t abbrev:t utc_offset:t is_dst:b"),
];

/// Tables of the schema `information_schema`.
pub(crate) const INFORMATION_SCHEMA: &[Layout] = &[
    table(
        13_001,
        "tables",
        "table_catalog:t table_schema:t table_name:t table_type:t \
         self_referencing_column_name:t reference_generation:t user_defined_type_catalog:t \
         user_defined_type_schema:t user_defined_type_name:t is_insertable_into:t is_typed:t \
         commit_action:t",
    ),
    table(
        13_002,
        "columns",
        "table_catalog:t table_schema:t table_name:t column_name:t ordinal_position:i \
         column_default:t is_nullable:t data_type:t character_maximum_length:i \
         character_octet_length:i numeric_precision:i numeric_precision_radix:i numeric_scale:i \
         datetime_precision:i interval_type:t collation_name:t domain_name:t udt_catalog:t \
         udt_schema:t udt_name:t is_identity:t is_generated:t is_updatable:t",
    ),
    table(
        13_003,
        "schemata",
        "catalog_name:t schema_name:t schema_owner:t default_character_set_catalog:t \
         default_character_set_schema:t default_character_set_name:t sql_path:t",
    ),
    table(
        13_004,
        "views",
        "table_catalog:t table_schema:t table_name:t view_definition:t check_option:t \
         is_updatable:t is_insertable_into:t",
    ),
    table(
        13_005,
        "character_sets",
        "character_set_catalog:t character_set_schema:t character_set_name:t \
         character_repertoire:t form_of_use:t default_collate_catalog:t \
         default_collate_schema:t default_collate_name:t",
    ),
    table(
        13_006,
        "key_column_usage",
        "constraint_catalog:t constraint_schema:t constraint_name:t table_catalog:t \
         table_schema:t table_name:t column_name:t ordinal_position:i \
         position_in_unique_constraint:i",
    ),
    table(
        13_007,
        "table_constraints",
        "constraint_catalog:t constraint_schema:t constraint_name:t table_catalog:t \
         table_schema:t table_name:t constraint_type:t is_deferrable:t initially_deferred:t \
         enforced:t",
    ),
    table(
        13_008,
        "referential_constraints",
        "constraint_catalog:t constraint_schema:t constraint_name:t \
         unique_constraint_catalog:t unique_constraint_schema:t unique_constraint_name:t \
         match_option:t update_rule:t delete_rule:t",
    ),
    table(
        13_009,
        "constraint_column_usage",
        "table_catalog:t table_schema:t table_name:t column_name:t constraint_catalog:t \
         constraint_schema:t constraint_name:t",
    ),
    table(
        13_010,
        "routines",
        "specific_catalog:t specific_schema:t specific_name:t routine_catalog:t \
         routine_schema:t routine_name:t routine_type:t data_type:t",
    ),
    table(13_011, "sequences", "sequence_catalog:t sequence_schema:t sequence_name:t data_type:t"),
    table(
        13_012,
        "questdb_columns",
        "table_catalog:t table_schema:t table_name:t column_name:t ordinal_position:i \
         column_default:t is_nullable:t data_type:t",
    ),
];
