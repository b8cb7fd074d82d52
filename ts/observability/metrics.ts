/** Counters and gauges, printed as Prometheus text. Names carry their unit last. */

class Counter {
  #value = 0;

  increment(by = 1): void {
    this.#value += by;
  }

  get value(): number {
    return this.#value;
  }
}

interface Metric {
  readonly kind: 'counter' | 'gauge';
  readonly help: string;
  readonly read: () => number;
}

export class MetricsRegistry {
  readonly #metrics = new Map<string, Metric>();

  counter(name: string, help: string): Counter {
    const counter = new Counter();
    this.#metrics.set(name, { kind: 'counter', help, read: () => counter.value });
    return counter;
  }

  gauge(name: string, help: string, read: () => number): void {
    this.#metrics.set(name, { kind: 'gauge', help, read });
  }

  /** Prometheus text format 0.0.4; `more` are gauges read elsewhere (the engine's). */
  text(more: Readonly<Record<string, number>> = {}): string {
    const own = [...this.#metrics].map(([name, metric]) =>
      [
        `# HELP tidemark_${name} ${metric.help}`,
        `# TYPE tidemark_${name} ${metric.kind}`,
        `tidemark_${name} ${metric.read()}`,
      ].join('\n'),
    );
    const engine = Object.entries(more).map(
      ([name, value]) => `# TYPE tidemark_${name} gauge\ntidemark_${name} ${value}`,
    );
    return [...own, ...engine, ''].join('\n');
  }
}
