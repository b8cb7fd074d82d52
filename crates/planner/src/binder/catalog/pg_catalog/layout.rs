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

pub(super) const fn table(oid: i32, name: &'static str, columns: &'static str) -> Layout {
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
         collencoding:i collcollate:t collctype:t collversion:t colliculocale:t",
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
        "oid:o stxrelid:o stxname:t stxnamespace:o stxowner:o stxstattarget:i stxkeys:t stxkind:t \
         stxexprs:t",
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
    table(
        2618,
        "pg_rewrite",
        "oid:o rulename:t ev_class:o ev_type:t ev_enabled:t is_instead:b ev_qual:t ev_action:t",
    ),
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
    table(
        12_008,
        "pg_locks",
        "locktype:t database:o relation:o page:i pid:i mode:t granted:b tuple:s virtualxid:t \
         transactionid:i classid:o objid:o objsubid:s virtualtransaction:t fastpath:b waitstart:p",
    ),
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
    table(1418, "pg_user_mapping", "oid:o umuser:o umserver:o umoptions:t"),
    table(
        2328,
        "pg_foreign_data_wrapper",
        "oid:o fdwname:t fdwowner:o fdwhandler:o fdwvalidator:o fdwacl:t fdwoptions:t",
    ),
    table(
        2602,
        "pg_amop",
        "oid:o amopfamily:o amoplefttype:o amoprighttype:o amopstrategy:s amoppurpose:t amopopr:o \
         amopmethod:o amopsortfamily:o",
    ),
    table(
        2603,
        "pg_amproc",
        "oid:o amprocfamily:o amproclefttype:o amprocrighttype:o amprocnum:s amproc:r",
    ),
    table(2613, "pg_largeobject", "loid:o pageno:i data:t"),
    table(2995, "pg_largeobject_metadata", "oid:o lomowner:o lomacl:t"),
    table(
        2617,
        "pg_operator",
        "oid:o oprname:t oprnamespace:o oprowner:o oprkind:t oprcanmerge:b oprcanhash:b oprleft:o \
         oprright:o oprresult:o oprcom:o oprnegate:o oprcode:r oprrest:r oprjoin:r",
    ),
    table(2753, "pg_opfamily", "oid:o opfmethod:o opfname:t opfnamespace:o opfowner:o"),
    table(2964, "pg_db_role_setting", "setdatabase:o setrole:o setconfig:t"),
    table(
        3350,
        "pg_partitioned_table",
        "partrelid:o partstrat:t partnatts:s partdefid:o partattrs:v partclass:v partcollation:v \
         partexprs:t",
    ),
    table(3394, "pg_init_privs", "objoid:o classoid:o objsubid:i privtype:t initprivs:t"),
    table(3576, "pg_transform", "oid:o trftype:o trflang:o trffromsql:r trftosql:r"),
    table(3592, "pg_shseclabel", "objoid:o classoid:o provider:t label:t"),
    table(3596, "pg_seclabel", "objoid:o classoid:o objsubid:i provider:t label:t"),
    table(
        12_100,
        "pg_seclabels",
        "objoid:o classoid:o objsubid:i objtype:t objnamespace:o objname:t provider:t label:t",
    ),
    table(
        1214,
        "pg_shdepend",
        "dbid:o classid:o objid:o objsubid:i refclassid:o refobjid:o deptype:t",
    ),
    table(
        3600,
        "pg_ts_dict",
        "oid:o dictname:t dictnamespace:o dictowner:o dicttemplate:o dictinitoption:t",
    ),
    table(
        3601,
        "pg_ts_parser",
        "oid:o prsname:t prsnamespace:o prsstart:r prstoken:r prsend:r prsheadline:r prslextype:r",
    ),
    table(3603, "pg_ts_config_map", "mapcfg:o maptokentype:i mapseqno:i mapdict:o"),
    table(3764, "pg_ts_template", "oid:o tmplname:t tmplnamespace:o tmplinit:r tmpllexize:r"),
    table(
        6100,
        "pg_subscription",
        "oid:o subdbid:o subskiplsn:t subname:t subowner:o subenabled:b subbinary:b substream:b \
         subtwophasestate:t subdisableonerr:b subconninfo:t subslotname:t subsynccommit:t \
         subpublications:t",
    ),
    table(6102, "pg_subscription_rel", "srsubid:o srrelid:o srsubstate:t srsublsn:t"),
    table(
        12_101,
        "pg_shadow",
        "usename:t usesysid:o usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd:t \
         valuntil:p useconfig:t",
    ),
    table(12_102, "pg_group", "groname:t grosysid:o grolist:v"),
    table(
        12_103,
        "pg_policies",
        "schemaname:t tablename:t policyname:t permissive:t roles:t cmd:t qual:t with_check:t",
    ),
    table(12_104, "pg_rules", "schemaname:t tablename:t rulename:t definition:t"),
    table(
        12_105,
        "pg_stats",
        "schemaname:t tablename:t attname:t inherited:b null_frac:f avg_width:i n_distinct:f \
         most_common_vals:t most_common_freqs:t histogram_bounds:t correlation:f \
         most_common_elems:t most_common_elem_freqs:t elem_count_histogram:t",
    ),
    table(
        12_106,
        "pg_stats_ext",
        "schemaname:t tablename:t statistics_schemaname:t statistics_name:t statistics_owner:t \
         attnames:t exprs:t kinds:t inherited:b n_distinct:t dependencies:t most_common_vals:t \
         most_common_val_nulls:t most_common_freqs:t most_common_base_freqs:t",
    ),
    table(
        12_107,
        "pg_publication_tables",
        "pubname:t schemaname:t tablename:t attnames:t rowfilter:t",
    ),
    table(
        12_108,
        "pg_available_extension_versions",
        "name:t version:t installed:b superuser:b trusted:b relocatable:b schema:t requires:t \
         comment:t",
    ),
    table(12_109, "pg_prepared_xacts", "transaction:i gid:t prepared:p owner:t database:t"),
    table(
        12_110,
        "pg_prepared_statements",
        "name:t statement:t prepare_time:p parameter_types:t from_sql:b generic_plans:l \
         custom_plans:l",
    ),
    table(12_111, "pg_timezone_abbrevs", "abbrev:t utc_offset:l is_dst:b"),
    table(
        12_112,
        "pg_stat_all_tables",
        "relid:o schemaname:t relname:t seq_scan:l seq_tup_read:l idx_scan:l idx_tup_fetch:l \
         n_tup_ins:l n_tup_upd:l n_tup_del:l n_tup_hot_upd:l n_live_tup:l n_dead_tup:l \
         n_mod_since_analyze:l n_ins_since_vacuum:l last_vacuum:p last_autovacuum:p \
         last_analyze:p last_autoanalyze:p vacuum_count:l autovacuum_count:l analyze_count:l \
         autoanalyze_count:l",
    ),
    table(
        12_113,
        "pg_stat_sys_tables",
        "relid:o schemaname:t relname:t seq_scan:l seq_tup_read:l idx_scan:l idx_tup_fetch:l \
         n_tup_ins:l n_tup_upd:l n_tup_del:l n_tup_hot_upd:l n_live_tup:l n_dead_tup:l \
         n_mod_since_analyze:l n_ins_since_vacuum:l last_vacuum:p last_autovacuum:p \
         last_analyze:p last_autoanalyze:p vacuum_count:l autovacuum_count:l analyze_count:l \
         autoanalyze_count:l",
    ),
    table(
        12_114,
        "pg_stat_all_indexes",
        "relid:o indexrelid:o schemaname:t relname:t indexrelname:t idx_scan:l idx_tup_read:l \
         idx_tup_fetch:l",
    ),
    table(
        12_115,
        "pg_stat_user_indexes",
        "relid:o indexrelid:o schemaname:t relname:t indexrelname:t idx_scan:l idx_tup_read:l \
         idx_tup_fetch:l",
    ),
    table(
        12_116,
        "pg_statio_user_indexes",
        "relid:o indexrelid:o schemaname:t relname:t indexrelname:t idx_blks_read:l \
         idx_blks_hit:l",
    ),
    table(
        12_117,
        "pg_statio_all_indexes",
        "relid:o indexrelid:o schemaname:t relname:t indexrelname:t idx_blks_read:l \
         idx_blks_hit:l",
    ),
    table(
        12_118,
        "pg_statio_user_sequences",
        "relid:o schemaname:t relname:t blks_read:l blks_hit:l",
    ),
    table(
        12_119,
        "pg_stat_replication",
        "pid:i usesysid:o usename:t application_name:t client_addr:t client_hostname:t \
         client_port:i backend_start:p backend_xmin:i state:t sent_lsn:t write_lsn:t flush_lsn:t \
         replay_lsn:t write_lag:l flush_lag:l replay_lag:l sync_priority:i sync_state:t \
         reply_time:p",
    ),
    table(
        12_120,
        "pg_stat_wal_receiver",
        "pid:i status:t receive_start_lsn:t receive_start_tli:i written_lsn:t flushed_lsn:t \
         received_tli:i last_msg_send_time:p last_msg_receipt_time:p latest_end_lsn:t \
         latest_end_time:p slot_name:t sender_host:t sender_port:i conninfo:t",
    ),
    table(
        12_121,
        "pg_stat_ssl",
        "pid:i ssl:b version:t cipher:t bits:i client_dn:t client_serial:t issuer_dn:t",
    ),
    table(12_122, "pg_stat_gssapi", "pid:i gss_authenticated:b principal:t encrypted:b"),
    table(
        12_123,
        "pg_replication_slots",
        "slot_name:t plugin:t slot_type:t datoid:o database:t temporary:b active:b active_pid:i \
         xmin:i catalog_xmin:i restart_lsn:t confirmed_flush_lsn:t wal_status:t safe_wal_size:l \
         two_phase:b",
    ),
    table(
        12_124,
        "pg_stat_database",
        "datid:o datname:t numbackends:i xact_commit:l xact_rollback:l blks_read:l blks_hit:l \
         tup_returned:l tup_fetched:l tup_inserted:l tup_updated:l tup_deleted:l conflicts:l \
         temp_files:l temp_bytes:l deadlocks:l checksum_failures:l checksum_last_failure:p \
         blk_read_time:f blk_write_time:f session_time:f active_time:f idle_in_transaction_time:f \
         sessions:l sessions_abandoned:l sessions_fatal:l sessions_killed:l stats_reset:p",
    ),
    table(
        12_125,
        "pg_stat_database_conflicts",
        "datid:o datname:t confl_tablespace:l confl_lock:l confl_snapshot:l confl_bufferpin:l \
         confl_deadlock:l",
    ),
    table(
        12_126,
        "pg_stat_user_functions",
        "funcid:o schemaname:t funcname:t calls:l total_time:f self_time:f",
    ),
    table(
        12_127,
        "pg_stat_archiver",
        "archived_count:l last_archived_wal:t last_archived_time:p failed_count:l \
         last_failed_wal:t last_failed_time:p stats_reset:p",
    ),
    table(
        12_128,
        "pg_stat_bgwriter",
        "checkpoints_timed:l checkpoints_req:l checkpoint_write_time:f checkpoint_sync_time:f \
         buffers_checkpoint:l buffers_clean:l maxwritten_clean:l buffers_backend:l \
         buffers_backend_fsync:l buffers_alloc:l stats_reset:p",
    ),
    table(
        12_129,
        "pg_stat_wal",
        "wal_records:l wal_fpi:l wal_bytes:t wal_buffers_full:l wal_write:l wal_sync:l \
         wal_write_time:f wal_sync_time:f stats_reset:p",
    ),
    table(
        12_130,
        "pg_stat_progress_vacuum",
        "pid:i datid:o datname:t relid:o phase:t heap_blks_total:l heap_blks_scanned:l \
         heap_blks_vacuumed:l index_vacuum_count:l max_dead_tuples:l num_dead_tuples:l",
    ),
    table(
        12_131,
        "pg_stat_progress_create_index",
        "pid:i datid:o datname:t relid:o index_relid:o command:t phase:t lockers_total:l \
         lockers_done:l current_locker_pid:l blocks_total:l blocks_done:l tuples_total:l \
         tuples_done:l partitions_total:l partitions_done:l",
    ),
    table(12_132, "pg_user_mappings", "umid:o srvid:o srvname:t umuser:o usename:t umoptions:t"),
];
