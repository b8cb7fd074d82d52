/**
 * `monitoring/tidemark-alerts.yml`: Prometheus alert rules for Tidemark. `npm run generate` writes
 * the file. Each rule has samples under which it fires.
 */

interface Alert {
  readonly name: string;
  readonly severity: 'critical' | 'warning';
  readonly expr: string;
  /** How long the expression must hold. */
  readonly wait: string;
  readonly summary: string;
  /** What the operator can do. */
  readonly action: string;
  /** Samples in promtool's notation, one per minute, under which the alert fires after 6 h. */
  readonly fires: readonly string[];
}

const GIB = 1024 ** 3;
/** Seven hours of samples. */
const STEPS = 420;
const errors = 'rate(tidemark_ingest_errors_total[5m])';
const commits = 'rate(tidemark_ingest_commits_total[5m])';
const buckets = 'sum by (instance, protocol, le) (rate(tidemark_ingest_commit_seconds_bucket[5m]))';

export const ALERTS: readonly Alert[] = [
  {
    name: 'TidemarkDown',
    severity: 'critical',
    expr: 'up{job="tidemark"} == 0',
    wait: '1m',
    summary: 'Prometheus cannot read the metrics of {{ $labels.instance }}.',
    action: 'Run tidemark status on the machine, and read the log.',
    fires: [`up{job="tidemark"} 0x${STEPS}`],
  },
  {
    name: 'TidemarkTableDamaged',
    severity: 'critical',
    expr: 'tidemark_damaged_tables > 0',
    wait: '0m',
    summary: '{{ $value }} tables on {{ $labels.instance }} are damaged.',
    action: 'GET /health names them. See the guide on backup and damage.',
    fires: [`tidemark_damaged_tables 1x${STEPS}`],
  },
  {
    name: 'TidemarkDiskLow',
    severity: 'critical',
    expr:
      'tidemark_storage_free_bytes < ' +
      `2 * clamp_max(0.05 * tidemark_storage_size_bytes, ${GIB})`,
    wait: '5m',
    summary: '{{ $value | humanize1024 }}B of the data disk of {{ $labels.instance }} are free.',
    action: 'Drop partitions or extend the disk. Writes stop at disk.watermark.',
    fires: [
      `tidemark_storage_free_bytes ${1.9 * GIB}x${STEPS}`,
      `tidemark_storage_size_bytes ${100 * GIB}x${STEPS}`,
    ],
  },
  {
    name: 'TidemarkDiskFullWithinADay',
    severity: 'warning',
    expr: 'predict_linear(tidemark_storage_free_bytes[6h], 86400) < 0',
    wait: '1h',
    summary: 'The data disk of {{ $labels.instance }} will be full within a day.',
    action: 'Set a TTL or a storage policy, drop partitions or extend the disk.',
    fires: [
      `tidemark_storage_free_bytes ${50 * GIB}-${50 * 1024 ** 2}x${STEPS}`,
      `tidemark_storage_size_bytes ${100 * GIB}x${STEPS}`,
    ],
  },
  {
    name: 'TidemarkIngestErrors',
    severity: 'warning',
    expr: `${errors} > 0.05 * (${errors} + ${commits})`,
    wait: '10m',
    summary: 'More than 5 % of the {{ $labels.protocol }} requests to {{ $labels.instance }} fail.',
    action: 'Search the log for the reasons.',
    fires: [
      `tidemark_ingest_errors_total{protocol="qwp"} 0+6x${STEPS}`,
      `tidemark_ingest_commits_total{protocol="qwp"} 0+60x${STEPS}`,
    ],
  },
  {
    name: 'TidemarkSlowCommits',
    severity: 'warning',
    expr: `histogram_quantile(0.99, ${buckets}) > 1`,
    wait: '10m',
    summary: 'Of the {{ $labels.protocol }} commits on {{ $labels.instance }}, 1 % take over 1 s.',
    action: 'Check the disk, and send fewer and larger commits.',
    fires: [
      `tidemark_ingest_commit_seconds_bucket{protocol="qwp",le="1"} 0+60x${STEPS}`,
      `tidemark_ingest_commit_seconds_bucket{protocol="qwp",le="2.5"} 0+63x${STEPS}`,
      `tidemark_ingest_commit_seconds_bucket{protocol="qwp",le="+Inf"} 0+63x${STEPS}`,
    ],
  },
  {
    name: 'TidemarkStatementFailures',
    severity: 'warning',
    expr:
      'rate(tidemark_statement_failures_total[5m]) > ' +
      '0.1 * rate(tidemark_statements_total[5m])',
    wait: '10m',
    summary: 'More than 10 % of the statements on {{ $labels.instance }} fail.',
    action: 'Set log.level=debug and reload the configuration to see the reasons.',
    fires: [
      `tidemark_statement_failures_total 0+7x${STEPS}`,
      `tidemark_statements_total 0+60x${STEPS}`,
    ],
  },
  {
    name: 'TidemarkQueriesWaiting',
    severity: 'warning',
    expr: 'min_over_time(tidemark_waiting_queries[5m]) > 0',
    wait: '5m',
    summary: 'Queries on {{ $labels.instance }} have been waiting to run for 5 minutes.',
    action: 'SELECT * FROM query_activity() shows the running queries. See query.concurrency.',
    fires: [`tidemark_waiting_queries 3x${STEPS}`],
  },
  {
    name: 'TidemarkQueryMemoryHigh',
    severity: 'warning',
    expr: 'tidemark_query_memory_bytes > 0.9 * tidemark_query_memory_limit_bytes',
    wait: '5m',
    summary: 'Queries on {{ $labels.instance }} use more than 90 % of their memory.',
    action: 'Cancel large queries, or raise query.memory.pool.',
    fires: [
      `tidemark_query_memory_bytes ${0.95 * GIB}x${STEPS}`,
      `tidemark_query_memory_limit_bytes ${GIB}x${STEPS}`,
    ],
  },
  {
    name: 'TidemarkOpenFilesHigh',
    severity: 'warning',
    expr: 'process_open_fds{job="tidemark"} > 0.8 * process_max_fds{job="tidemark"}',
    wait: '5m',
    summary: '{{ $labels.instance }} uses more than 80 % of its open files.',
    action: 'Raise the limit of open files, such as LimitNOFILE of the systemd unit.',
    fires: [
      `process_open_fds{job="tidemark"} 900x${STEPS}`,
      `process_max_fds{job="tidemark"} 1024x${STEPS}`,
    ],
  },
  {
    name: 'TidemarkRestarts',
    severity: 'warning',
    expr: 'changes(process_start_time_seconds{job="tidemark"}[1h]) > 2',
    wait: '0m',
    summary: '{{ $labels.instance }} started {{ $value }} times within an hour.',
    action: 'Read the log of the last starts.',
    fires: [`process_start_time_seconds{job="tidemark"} 1000+60x${STEPS}`],
  },
  {
    name: 'TidemarkLogLinesDropped',
    severity: 'warning',
    expr: 'increase(tidemark_dropped_log_lines_total[10m]) > 0',
    wait: '0m',
    summary: '{{ $labels.instance }} dropped log lines.',
    action: 'Raise log.level, or check the disk or program that receives the log.',
    fires: [`tidemark_dropped_log_lines_total 0+5x${STEPS}`],
  },
];

/** Samples of a healthy server, under which no alert fires. */
export const HEALTHY: readonly string[] = [
  `up{job="tidemark"} 1x${STEPS}`,
  `tidemark_damaged_tables 0x${STEPS}`,
  `tidemark_storage_free_bytes ${50 * GIB}-1000x${STEPS}`,
  `tidemark_storage_size_bytes ${100 * GIB}x${STEPS}`,
  `tidemark_ingest_errors_total{protocol="qwp"} 0+1x${STEPS}`,
  `tidemark_ingest_errors_total{protocol="line_tcp"} 0x${STEPS}`,
  `tidemark_ingest_commits_total{protocol="qwp"} 0+60x${STEPS}`,
  `tidemark_ingest_commits_total{protocol="line_tcp"} 0x${STEPS}`,
  `tidemark_ingest_commit_seconds_bucket{protocol="qwp",le="0.01"} 0+60x${STEPS}`,
  `tidemark_ingest_commit_seconds_bucket{protocol="qwp",le="+Inf"} 0+60x${STEPS}`,
  `tidemark_statement_failures_total 0+1x${STEPS}`,
  `tidemark_statements_total 0+60x${STEPS}`,
  `tidemark_waiting_queries 0 3x2 0x${STEPS}`,
  `tidemark_query_memory_bytes 1000x${STEPS}`,
  `tidemark_query_memory_limit_bytes ${GIB}x${STEPS}`,
  `process_open_fds{job="tidemark"} 100x${STEPS}`,
  `process_max_fds{job="tidemark"} 1024x${STEPS}`,
  `process_start_time_seconds{job="tidemark"} 1000x${STEPS}`,
  `tidemark_dropped_log_lines_total 0x${STEPS}`,
];

const HEAD = `# Prometheus alert rules for Tidemark, whose scrape job is named tidemark.
# Generated by \`npm run generate\` from test/observability/alerts.ts; do not edit.
`;

export function alertRules(): string {
  const rules = ALERTS.map((alert) =>
    [
      `      - alert: ${alert.name}`,
      `        expr: ${JSON.stringify(alert.expr)}`,
      `        for: ${alert.wait}`,
      '        labels:',
      `          severity: ${alert.severity}`,
      '        annotations:',
      `          summary: ${JSON.stringify(alert.summary)}`,
      `          description: ${JSON.stringify(alert.action)}`,
    ].join('\n'),
  );
  return `${HEAD}groups:\n  - name: tidemark\n    rules:\n${rules.join('\n')}\n`;
}
