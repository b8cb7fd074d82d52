/** Function names that users of the dialect expect. */
export const PEER_NAMES: readonly string[] = `
  approx_count_distinct approx_median approx_percentile arg_max arg_min array_agg
  array_elem_avg array_elem_max array_elem_min array_elem_sum avg bit_and bit_or bit_xor
  bool_and bool_or corr count count_distinct covar_pop covar_samp first first_not_null geomean
  haversine_dist_deg ksum kurtosis kurtosis_samp kurtosis_pop last last_not_null max min mode
  nsum regr_intercept regr_r2 regr_slope skewness skewness_samp skewness_pop sparkline stddev
  stddev_samp stddev_pop string_agg string_distinct_agg sum twap var_pop variance var_samp
  weighted_avg weighted_stddev weighted_stddev_rel weighted_stddev_freq isOrdered array_avg
  array_build array_count array_cum_sum array_max array_min array_position array_reverse
  array_sort array_stddev array_stddev_samp array_stddev_pop array_sum dim_length dot_product
  flatten insertion_point matmul shift transpose base64 coalesce nullif date_trunc dateadd
  datediff day day_of_week day_of_week_sunday_first days_in_month extract hour interval
  interval_end interval_start is_end_of_month is_leap_year micros millis minute month nanos
  now now_ns pg_postmaster_start_time second sysdate systimestamp systimestamp_ns
  timestamp_ceil timestamp_floor timestamp_shuffle to_date to_str to_timestamp to_timestamp_ns
  to_timezone to_utc today tomorrow week_of_year year yesterday l2price mid spread_bps wmid
  md5 sha1 sha256 json_extract abs ceil ceiling exp floor greatest least ln log power round
  round_down round_half_even round_up sign size_pretty sqrt read_parquet regexp_replace
  rnd_bin rnd_boolean rnd_byte rnd_char rnd_date rnd_decimal rnd_double rnd_double_array
  rnd_float rnd_geohash rnd_int rnd_ipv4 rnd_long rnd_long256 rnd_short rnd_str rnd_symbol
  rnd_symbol_weighted rnd_symbol_zipf rnd_timestamp rnd_timestamp_ns rnd_uuid4 rnd_varchar
  generate_series long_sequence timestamp_sequence timestamp_sequence_ns geo_distance_meters
  geo_within_radius_latlon make_geohash within_box within_radius concat left length
  length_bytes lower to_lowercase lpad ltrim position strpos quote_ident replace right rpad
  rtrim split_part starts_with substring trim upper to_uppercase acos asin atan atan2 cos cot
  degrees pi radians sin tan to_uuid to_long256 netmask bar cume_dist dense_rank first_value lag
  last_value lead nth_value ntile percent_rank rank row_number touch build version
  current_database current_schema current_user cancel_query flush_query_cache functions
  hydrate_table_metadata reload_config checkpoint_status memory_metrics query_activity
  reader_pool writer_pool table_columns table_partitions table_storage tables views wal_tables
  wal_transactions
`
  .trim()
  .split(/\s+/);

/** Functions with special syntax or without parentheses, each with a statement that runs. */
export const PEER_FORMS: Readonly<Record<string, string>> = {
  case: 'SELECT CASE WHEN x = 1 THEN 2 END FROM long_sequence(1)',
  '~': "SELECT 'abc' ~ 'b'",
  '!~': "SELECT 'abc' !~ 'b'",
  LIKE: "SELECT 'abc' LIKE 'a%'",
  ILIKE: "SELECT 'abc' ILIKE 'A%'",
  '||': "SELECT 'a' || 'b'",
  timestamp: 'SELECT * FROM (SELECT x::timestamp t FROM long_sequence(1)) TIMESTAMP(t)',
  'pg_catalog.version': 'SELECT pg_catalog.version()',
  'information_schema.columns': 'SELECT * FROM information_schema.columns',
  'information_schema.tables': 'SELECT * FROM information_schema.tables',
};

/** Missing functions, with the reason. */
export const PEER_ABSENT: Readonly<Record<string, string>> = {
  all_permissions: 'access control',
  backup_instance_name: 'backup to object stores',
  backups: 'backup to object stores',
  live_views: 'live views',
  materialized_views: 'materialized views',
  'pg_catalog.*': 'the tables that drivers and tools read belong to the wire protocol',
  reload_tick_calendars: 'exchange calendars are not supported',
  tick_calendars: 'exchange calendars are not supported',
  reload_tls: 'the server answers SELECT reload_tls() itself',
  storage_policies: 'storage policies have no effect',
  'sys.copy_export_log': 'COPY',
  'sys.text_import_log': 'COPY',
};
