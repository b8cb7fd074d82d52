/** Process metrics, named as in Prometheus client libraries. */
import { readdirSync } from 'node:fs';

import { maxOpenFiles } from './host-limits.js';
import type { MetricsRegistry } from './metrics.js';

const MICROS = 1_000_000;

export function registerProcessMetrics(registry: MetricsRegistry): void {
  const startedSeconds = Date.now() / 1000 - process.uptime();
  registry.common(
    'process_cpu_seconds_total',
    { kind: 'counter', help: 'CPU time used by the process, in seconds.' },
    () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / MICROS;
    },
  );
  registry.common(
    'process_start_time_seconds',
    { kind: 'gauge', help: 'Start time of the process, in seconds since 1970.' },
    () => startedSeconds,
  );
  registry.common(
    'process_resident_memory_bytes',
    { kind: 'gauge', help: 'Resident memory of the process, including mapped files.' },
    () => process.memoryUsage.rss(),
  );
  registry.common(
    'process_open_fds',
    { kind: 'gauge', help: 'Number of open files and sockets.' },
    openFiles,
  );
  registry.common(
    'process_max_fds',
    { kind: 'gauge', help: 'Maximum number of open files and sockets.' },
    maxOpenFiles,
  );
}

function openFiles(): number | null {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    return null; // the system does not tell
  }
}
