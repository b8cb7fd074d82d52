/**
 * Parses the output of EXPLAIN into a list of operators, with their tree depth and measurements.
 */

export interface PlanNode {
  readonly name: string;
  readonly detail: string;
  /** Depth in the operator tree. The operator that returns the result has depth 0. */
  readonly depth: number;
  readonly rows: string | undefined;
  /** Execution time in milliseconds. */
  readonly ms: number | undefined;
  readonly metrics: readonly Metric[];
}

interface Metric {
  readonly name: string;
  readonly value: string;
}

export interface Plan {
  readonly nodes: readonly PlanNode[];
  /** Totals of the whole plan: rows, partitions, time. */
  readonly totals: readonly Metric[];
  readonly lines: readonly string[];
}

const METRICS = /,? ?metrics=\[(.*)\]$/;
const TOTAL = /^(Rows|Partitions|Time): (.+)$/;
const INDENT = 2;

export function parsePlan(lines: readonly string[]): Plan {
  const nodes: PlanNode[] = [];
  const totals: Metric[] = [];
  for (const line of lines) {
    const total = TOTAL.exec(line);
    if (total?.[1] !== undefined && total[2] !== undefined) {
      totals.push({ name: total[1], value: total[2] });
    } else if (line.trim() !== '') {
      nodes.push(parseNode(line));
    }
  }
  return { nodes, totals, lines };
}

function parseNode(line: string): PlanNode {
  const text = line.trimStart();
  const measured = METRICS.exec(text);
  const metrics = metricsOf(measured?.[1] ?? '');
  const plain = measured ? text.slice(0, measured.index) : text;
  const colon = plain.indexOf(':');
  const name = colon < 0 ? plain : plain.slice(0, colon);
  const find = (name: string): string | undefined =>
    metrics.find((metric) => metric.name === name)?.value;
  return {
    name: name.replace(/Exec$/, ''),
    detail: colon < 0 ? '' : plain.slice(colon + 1).trim(),
    depth: Math.floor((line.length - text.length) / INDENT),
    rows: find('output_rows'),
    ms: millis(find('elapsed_compute')),
    metrics,
  };
}

function metricsOf(text: string): Metric[] {
  // A value may contain commas, so split only where a name follows the comma.
  return text
    .split(/, (?=[a-z_]+(?:\{[^}]*\})?=)/)
    .map((part) => /^([^=]+)=(.*)$/s.exec(part))
    .flatMap((match) => (match ? [{ name: match[1] ?? '', value: match[2] ?? '' }] : []));
}

const UNITS: Readonly<Record<string, number>> = { ns: 1e-6, µs: 1e-3, us: 1e-3, ms: 1, s: 1e3 };

/** Parses `1.5ms` and `320µs` as milliseconds. */
export function millis(text: string | undefined): number | undefined {
  const match = /^([\d.]+)(ns|µs|us|ms|s)$/.exec(text ?? '');
  return match ? Number(match[1]) * (UNITS[match[2] ?? ''] ?? Number.NaN) : undefined;
}
