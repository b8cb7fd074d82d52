/**
 * Counters and gauges, printed as Prometheus text. Names carry their unit last; labels say of which
 * protocol, and the like. `docs/metrics.md` is written from what is registered.
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

type Labels = Readonly<Record<string, string>>;

/** What a name means. */
export interface MetricMeaning {
  readonly kind: 'counter' | 'gauge';
  readonly help: string;
}

/** A metric, as documents list it. */
interface ListedMetric extends MetricMeaning {
  /** With its prefix. */
  readonly name: string;
  readonly labels: readonly string[];
}

interface Family extends MetricMeaning {
  readonly labels: readonly string[];
  /** By the text of its labels; what is not known at the moment is left out. */
  readonly samples: Map<string, () => number | null>;
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

  /** Read elsewhere, and named as everyone names it: without the prefix of ours. */
  common(name: string, meaning: MetricMeaning, read: () => number | null): void {
    this.#add(name, meaning, {}, read);
  }

  /** Read elsewhere. */
  read(name: string, meaning: MetricMeaning, read: () => number | null): void {
    this.#add(PREFIX + name, meaning, {}, read);
  }

  #add(name: string, meaning: MetricMeaning, labels: Labels, read: () => number | null): void {
    const family = this.#families.get(name) ?? {
      ...meaning,
      labels: Object.keys(labels),
      samples: new Map<string, () => number | null>(),
    };
    this.#families.set(name, family);
    family.samples.set(labelText(labels), read);
  }

  /** Runs `look` whenever the figures are read, before them. */
  beforeText(look: () => void): void {
    this.#before.push(look);
  }

  list(): ListedMetric[] {
    return [...this.#families].map(([name, { kind, help, labels }]) => ({
      name,
      kind,
      help,
      labels,
    }));
  }

  /** Prometheus text format 0.0.4. */
  text(): string {
    for (const look of this.#before) {
      look();
    }
    const lines = [...this.#families].flatMap(([name, { kind, help, samples }]) => {
      const shown = [...samples].flatMap(([labels, read]) => {
        const value = read();
        return value === null ? [] : [`${name}${labels} ${value}`];
      });
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
