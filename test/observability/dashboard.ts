/**
 * `monitoring/grafana-dashboard.json`: a Grafana dashboard with every metric in the registry. `npm
 * run generate` writes the file. Descriptions of panels are the help texts of their metrics.
 */
import { ServerMetrics } from '../../ts/observability/index.js';

type Unit = 'bytes' | 'Bps' | 'short' | 'cps' | 's' | 'percentunit';

interface Target {
  /** Metric name, without the suffix of a histogram. */
  readonly metric: string;
  /** PromQL with `METRIC` for the metric and its label filter. */
  readonly expr: string;
  readonly legend: string;
}

interface Panel {
  readonly title: string;
  readonly unit: Unit;
  readonly targets: readonly Target[];
  /** Shows the current value instead of a graph. */
  readonly isStat?: boolean;
}

const FILTER = '{instance=~"$instance"}';
const INTERVAL = '[$__rate_interval]';

function value(metric: string, legend = '{{instance}}'): Target {
  return { metric, expr: 'METRIC', legend };
}

function byProtocol(metric: string): Target {
  return { metric, expr: 'sum by (protocol) (METRIC)', legend: '{{protocol}}' };
}

function rate(metric: string, legend: string): Target {
  return { metric, expr: `sum(rate(METRIC${INTERVAL}))`, legend };
}

function protocolRate(metric: string): Target {
  const expr = `sum by (protocol) (rate(METRIC${INTERVAL}))`;
  return { metric, expr, legend: '{{protocol}}' };
}

function quantile(metric: string, share: number): Target {
  const buckets = `sum by (protocol, le) (rate(METRIC${INTERVAL}))`;
  const expr = `histogram_quantile(${share}, ${buckets})`;
  return { metric, expr, legend: `{{protocol}} p${share * 100}` };
}

const ROWS: Readonly<Record<string, readonly Panel[]>> = {
  Overview: [
    {
      title: 'Uptime',
      unit: 's',
      isStat: true,
      targets: [
        { metric: 'process_start_time_seconds', expr: 'time() - METRIC', legend: '{{instance}}' },
      ],
    },
    {
      title: 'Damaged tables',
      unit: 'short',
      isStat: true,
      targets: [value('tidemark_damaged_tables')],
    },
    {
      title: 'Free disk space',
      unit: 'bytes',
      isStat: true,
      targets: [value('tidemark_storage_free_bytes')],
    },
    {
      title: 'Dropped log lines',
      unit: 'short',
      isStat: true,
      targets: [value('tidemark_dropped_log_lines_total')],
    },
  ],
  Ingestion: [
    {
      title: 'Ingested rows',
      unit: 'cps',
      targets: [protocolRate('tidemark_ingest_rows_total')],
    },
    {
      title: 'Received bytes',
      unit: 'Bps',
      targets: [
        protocolRate('tidemark_ingest_bytes_total'),
        rate('tidemark_imported_bytes_total', 'all imports'),
      ],
    },
    { title: 'Commits', unit: 'cps', targets: [protocolRate('tidemark_ingest_commits_total')] },
    { title: 'Rejected', unit: 'cps', targets: [protocolRate('tidemark_ingest_errors_total')] },
    {
      title: 'Commit duration',
      unit: 's',
      targets: [
        quantile('tidemark_ingest_commit_seconds', 0.5),
        quantile('tidemark_ingest_commit_seconds', 0.99),
      ],
    },
    {
      title: 'Request duration',
      unit: 's',
      targets: [
        quantile('tidemark_ingest_request_seconds', 0.5),
        quantile('tidemark_ingest_request_seconds', 0.99),
      ],
    },
    {
      title: 'Written rows',
      unit: 'cps',
      targets: [
        rate('tidemark_rows_written_total', 'committed'),
        rate('tidemark_checkpointed_rows_total', 'written by checkpoints'),
      ],
    },
    {
      title: 'Waiting rows',
      unit: 'bytes',
      targets: [
        value('tidemark_unwritten_bytes', 'only in memory and the log'),
        value('tidemark_line_tcp_waiting_bytes', 'uncommitted lines over TCP'),
      ],
    },
  ],
  Queries: [
    {
      title: 'Statements',
      unit: 'cps',
      targets: [
        rate('tidemark_statements_total', 'all'),
        rate('tidemark_fast_path_statements_total', 'fast path'),
        rate('tidemark_cached_results_total', 'cached result'),
        rate('tidemark_statement_failures_total', 'failed'),
      ],
    },
    {
      title: 'Statement duration',
      unit: 's',
      targets: [
        quantile('tidemark_statement_seconds', 0.5),
        quantile('tidemark_statement_seconds', 0.99),
      ],
    },
    {
      title: 'Returned rows',
      unit: 'cps',
      targets: [rate('tidemark_rows_returned_total', 'rows')],
    },
    {
      title: 'Queries',
      unit: 'short',
      targets: [
        value('tidemark_running_queries', 'running or waiting'),
        value('tidemark_waiting_queries', 'waiting'),
      ],
    },
    {
      title: 'Query memory',
      unit: 'bytes',
      targets: [
        value('tidemark_query_memory_bytes', 'used'),
        value('tidemark_query_memory_limit_bytes', 'limit'),
        value('tidemark_spilled_bytes', 'spilled to disk'),
      ],
    },
    {
      title: 'Reads for views',
      unit: 'cps',
      targets: [rate('tidemark_view_base_reads_total', 'reads')],
    },
  ],
  Resources: [
    {
      title: 'Open connections',
      unit: 'short',
      targets: [byProtocol('tidemark_connections')],
    },
    {
      title: 'Memory',
      unit: 'bytes',
      targets: [
        value('tidemark_resident_bytes', 'resident'),
        value('process_resident_memory_bytes', 'resident with mapped files'),
      ],
    },
    { title: 'CPU', unit: 'short', targets: [rate('process_cpu_seconds_total', 'cores')] },
    {
      title: 'Data disk',
      unit: 'bytes',
      targets: [
        value('tidemark_storage_free_bytes', 'free'),
        value('tidemark_storage_size_bytes', 'size'),
      ],
    },
    {
      title: 'Open files',
      unit: 'short',
      targets: [value('process_open_fds', 'open'), value('process_max_fds', 'limit')],
    },
  ],
};

const COLUMNS = 24;
const HEIGHT = 7;

/** Returns the dashboard as an object. */
export function dashboard(): object {
  const about = descriptions();
  const panels: object[] = [];
  let y = 0;
  for (const [row, list] of Object.entries(ROWS)) {
    const id = panels.length + 1;
    const gridPos = { x: 0, y, w: COLUMNS, h: 1 };
    panels.push({ id, type: 'row', title: row, collapsed: false, gridPos, panels: [] });
    y += 1;
    const perLine = list[0]?.isStat === true ? 4 : 2;
    const w = COLUMNS / perLine;
    list.forEach((panel, index) => {
      const position = { x: (index % perLine) * w, y: y + Math.floor(index / perLine) * HEIGHT };
      panels.push(panelOf(panel, panels.length + 1, { ...position, w, h: HEIGHT }, about));
    });
    y += Math.ceil(list.length / perLine) * HEIGHT;
  }
  return {
    title: 'Tidemark',
    uid: 'tidemark',
    description: 'Generated from the metrics registry of Tidemark.',
    tags: ['tidemark'],
    schemaVersion: 39,
    version: 1,
    editable: true,
    timezone: 'browser',
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    annotations: { list: [] },
    templating: { list: VARIABLES },
    panels,
  };
}

const SOURCE = { type: 'prometheus', uid: '${datasource}' };
const INSTANCES = 'label_values(tidemark_statements_total, instance)';
const VARIABLES = [
  { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' },
  {
    name: 'instance',
    label: 'Server',
    type: 'query',
    datasource: SOURCE,
    definition: INSTANCES,
    query: { query: INSTANCES, refId: 'instance' },
    refresh: 2,
    includeAll: true,
    multi: true,
    current: { text: 'All', value: '$__all' },
  },
];

/** Returns help text and kind of each metric. */
function descriptions(): ReadonlyMap<string, { help: string; kind: string }> {
  const metrics = new ServerMetrics({
    engine: () => ({}),
    connections: () => null,
    waitingLines: () => null,
    root: '.',
  });
  return new Map(metrics.registry.list().map(({ name, help, kind }) => [name, { help, kind }]));
}

function panelOf(
  { title, unit, targets, isStat = false }: Panel,
  id: number,
  gridPos: object,
  about: ReturnType<typeof descriptions>,
): object {
  const known = (metric: string): { help: string; kind: string } => {
    const found = about.get(metric);
    if (found === undefined) {
      throw new Error(`the dashboard uses the unknown metric ${metric}`);
    }
    return found;
  };
  const metrics = [...new Set(targets.map(({ metric }) => metric))];
  return {
    id,
    type: isStat ? 'stat' : 'timeseries',
    title,
    description: metrics.map((metric) => `${metric}: ${known(metric).help}`).join('\n\n'),
    datasource: SOURCE,
    gridPos,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: isStat
      ? { reduceOptions: { calcs: ['lastNotNull'] } }
      : { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi' } },
    targets: targets.map(({ metric, expr, legend }, index) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + index),
      datasource: SOURCE,
      expr: expr.replace('METRIC', nameIn(metric, known(metric).kind) + FILTER),
      legendFormat: legend,
    })),
  };
}

function nameIn(metric: string, kind: string): string {
  return kind === 'histogram' ? `${metric}_bucket` : metric;
}
