/**
 * Counters, gauges and histograms, exported in Prometheus text format. Names end with their unit;
 * labels contain, for example, the protocol. `docs/metrics.md` is generated from the registered
 * metrics.
 */

export class Counter {
  #value = 0;

  increment(by = 1): void {
    this.#value += by;
  }

  get value(): number {
    return this.#value;
  }
}

/** Bucket bounds in seconds, from a small query to a long export. */
const SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const;

/** A histogram of durations in seconds. */
export class Histogram {
  /** Counts by bucket; the last bucket counts values above all bounds. */
  readonly #counts = Array<number>(SECONDS.length + 1).fill(0);
  #sum = 0;

  observe(seconds: number): void {
    let at = 0;
    while (at < SECONDS.length && seconds > (SECONDS[at] ?? Infinity)) {
      at += 1;
    }
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += seconds;
  }

  /** Returns the cumulative count for each bound, then the sum and the total count. */
  samples(): readonly Sample[] {
    let count = 0;
    const buckets = this.#counts.map((bucket, at) => {
      count += bucket;
      return { suffix: '_bucket', le: String(SECONDS[at] ?? '+Inf'), value: count };
    });
    return [...buckets, { suffix: '_sum', value: this.#sum }, { suffix: '_count', value: count }];
  }
}

/** One value of a metric; `suffix` is appended to the metric's name. */
interface Sample {
  readonly suffix: string;
  /** Upper bound of a bucket. */
  readonly le?: string;
  readonly value: number;
}

type Labels = Readonly<Record<string, string>>;

/** A metric's type and description. */
export interface MetricMeaning {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
}

/** A metric as listed in the documentation. */
interface ListedMetric extends MetricMeaning {
  /** Full name, including the prefix. */
  readonly name: string;
  readonly labels: readonly string[];
}

interface Family extends MetricMeaning {
  readonly labels: readonly string[];
  readonly series: { readonly labels: Labels; readonly read: () => readonly Sample[] }[];
}

const PREFIX = 'tidemark_';

export class MetricsRegistry {
  readonly #families = new Map<string, Family>();
  readonly #before: (() => void)[] = [];

  counter(name: string, help: string, labels: Labels = {}): Counter {
    const counter = new Counter();
    this.#add(PREFIX + name, { kind: 'counter', help }, labels, () => counter.value);
    return counter;
  }

  gauge(name: string, help: string, read: () => number | null, labels: Labels = {}): void {
    this.#add(PREFIX + name, { kind: 'gauge', help }, labels, read);
  }

  /** Registers a histogram of durations in seconds. */
  histogram(name: string, help: string, labels: Labels = {}): Histogram {
    const histogram = new Histogram();
    const samples = (): readonly Sample[] => histogram.samples();
    this.#addSeries(PREFIX + name, { kind: 'histogram', help }, labels, samples);
    return histogram;
  }

  /**
   * Registers a metric that a callback reads, under a standard name without this server's prefix.
   */
  common(name: string, meaning: MetricMeaning, read: () => number | null): void {
    this.#add(name, meaning, {}, read);
  }

  /** Registers a metric that a callback reads. */
  read(name: string, meaning: MetricMeaning, read: () => number | null): void {
    this.#add(PREFIX + name, meaning, {}, read);
  }

  /** Adds a metric; a `null` value is omitted from the output. */
  #add(name: string, meaning: MetricMeaning, labels: Labels, read: () => number | null): void {
    this.#addSeries(name, meaning, labels, () => {
      const value = read();
      return value === null ? [] : [{ suffix: '', value }];
    });
  }

  #addSeries(
    name: string,
    meaning: MetricMeaning,
    labels: Labels,
    read: () => readonly Sample[],
  ): void {
    const family = this.#families.get(name) ?? {
      ...meaning,
      labels: Object.keys(labels),
      series: [],
    };
    this.#families.set(name, family);
    family.series.push({ labels, read });
  }

  /** Runs `refresh` before each export. */
  beforeRender(refresh: () => void): void {
    this.#before.push(refresh);
  }

  list(): ListedMetric[] {
    return [...this.#families].map(([name, { kind, help, labels }]) => ({
      name,
      kind,
      help,
      labels,
    }));
  }

  /** Exports in Prometheus text format 0.0.4. */
  text(): string {
    for (const refresh of this.#before) {
      refresh();
    }
    const lines = [...this.#families].flatMap(([name, { kind, help, series }]) => {
      const shown = series.flatMap(({ labels, read }) =>
        read().map(({ suffix, le, value }) => {
          const all = le === undefined ? labels : { ...labels, le };
          return `${name}${suffix}${labelText(all)} ${value}`;
        }),
      );
      return shown.length === 0
        ? []
        : [`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`, ...shown];
    });
    return [...lines, ''].join('\n');
  }
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}
