/** Descriptions of the engine's metrics. The engine itself only reports their values by name. */
import type { MetricMeaning, MetricsRegistry } from './metrics.js';

function counter(help: string): MetricMeaning {
  return { kind: 'counter', help };
}

function gauge(help: string): MetricMeaning {
  return { kind: 'gauge', help };
}

const MEANINGS: Readonly<Record<string, MetricMeaning>> = {
  statements_total: counter('Statements executed.'),
  fast_path_statements_total: counter('Statements executed on the fast path.'),
  cached_results_total: counter('Statements answered from a cached result.'),
  statement_failures_total: counter('Statements that failed.'),
  rows_returned_total: counter('Rows sent to clients.'),
  rows_written_total: counter('Rows written through all protocols.'),
  checkpointed_rows_total: counter('Rows written to segments by checkpoints.'),
  view_base_reads_total: counter('Reads of change records for the base tables of views.'),
  imported_bytes_total: counter('Bytes received through CSV imports, the line protocol and COPY.'),
  running_queries: gauge('Queries that are running or waiting.'),
  waiting_queries: gauge('Queries waiting for a scheduling slot.'),
  query_memory_bytes: gauge('Total memory used by all queries.'),
  query_memory_limit_bytes: gauge('Total memory limit for all queries.'),
  spilled_bytes: gauge('Size of temporary files written by queries.'),
  resident_bytes: gauge('Resident memory of the process, excluding mapped files.'),
  unwritten_bytes: gauge('Size of rows that exist only in memory and the log.'),
  damaged_tables: gauge('Tables known to be damaged.'),
  dropped_log_lines_total: counter('Log lines dropped because the log queue was full.'),
};

/** `read` returns the values of all metrics together. */
export function registerEngineMetrics(
  registry: MetricsRegistry,
  read: () => Readonly<Record<string, number>>,
): void {
  let numbers: Readonly<Record<string, number>> = {};
  registry.beforeRender(() => {
    numbers = read();
  });
  for (const [name, meaning] of Object.entries(MEANINGS)) {
    registry.read(name, meaning, () => numbers[name] ?? null);
  }
}
