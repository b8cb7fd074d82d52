/** Descriptions of the engine's metrics; the engine only counts them by name. */
import type { MetricMeaning, MetricsRegistry } from './metrics.js';

function counter(help: string): MetricMeaning {
  return { kind: 'counter', help };
}

function gauge(help: string): MetricMeaning {
  return { kind: 'gauge', help };
}

const MEANINGS: Readonly<Record<string, MetricMeaning>> = {
  statements_total: counter('Statements executed.'),
  fast_path_statements_total: counter(
    'Statements that the engine executed by itself for clients who repeat their queries.',
  ),
  cached_results_total: counter('Statements whose result was cached for their parameters.'),
  statement_failures_total: counter('Statements that failed.'),
  rows_returned_total: counter('Rows sent to clients.'),
  rows_written_total: counter('Rows written, whatever brought them.'),
  checkpointed_rows_total: counter('Rows that checkpoints moved from the log into segments.'),
  view_base_reads_total: counter('Reads of what was touched of the bases of views.'),
  imported_bytes_total: counter('Bytes of CSV, lines and COPY that came in.'),
  running_queries: gauge('Queries that run or wait.'),
  waiting_queries: gauge('Queries that wait for their turn.'),
  query_memory_bytes: gauge('Memory that queries hold.'),
  query_memory_limit_bytes: gauge('Memory that queries may hold together.'),
  spilled_bytes: gauge('Temporary files of queries.'),
  resident_bytes: gauge('Memory of the process that no file backs.'),
  unwritten_bytes: gauge('Rows that only memory and the log hold.'),
  damaged_tables: gauge('Tables that are known to be damaged.'),
  dropped_log_lines_total: counter('Lines of the log that were dropped, because they were many.'),
};

/** `read` returns all values together. */
export function registerEngineMetrics(
  registry: MetricsRegistry,
  read: () => Readonly<Record<string, number>>,
): void {
  let numbers: Readonly<Record<string, number>> = {};
  registry.beforeText(() => {
    numbers = read();
  });
  for (const [name, meaning] of Object.entries(MEANINGS)) {
    registry.read(name, meaning, () => numbers[name] ?? null);
  }
}
