/**
 * Measures the work per frame while a wide grid is scrolled and while a statement with 500 columns
 * is typed: `npm run console-frames`. The results are printed but not asserted, because they depend
 * on the machine. The measure is the CPU time of the main thread, which other programs do not
 * affect; wall-clock time is printed as well.
 */
import type { Browser } from 'playwright-core';

import { startTestServer } from '../golden/server.js';
import { ConsolePage, launchBrowser } from './console-page.js';

const COLUMNS = 500;
const STEPS = 120;
const KEYS = 60;
const SLOW_MS = 50;

interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  /** Microseconds. */
  readonly ts: number;
  readonly dur?: number;
  /** CPU time of the thread. */
  readonly tdur?: number;
}

interface Frames {
  readonly cpu: readonly number[];
  readonly wall: readonly number[];
  /** Mean CPU time per frame, by kind of work. */
  readonly phases: ReadonlyMap<string, number>;
}

/** Trace names of frame work; none is nested in another. */
const PHASES = {
  FunctionCall: 'script',
  EventDispatch: 'events',
  UpdateLayoutTree: 'style',
  Layout: 'layout',
  PrePaint: 'prepaint',
  Paint: 'paint',
  Layerize: 'layers',
  Commit: 'commit',
  HitTest: 'hit tests',
} as const;

/**
 * Returns the main thread's work per frame. A frame ends with the event that reports its layers.
 */
function framesOf(events: readonly TraceEvent[]): Frames {
  const ends = events.filter(({ name }) => name === 'Layerize');
  const { pid, tid } = ends[0] ?? { pid: 0, tid: 0 };
  const own = (event: TraceEvent): boolean => event.pid === pid && event.tid === tid;
  const marks = ends
    .filter(own)
    .map(({ ts }) => ts)
    .sort((left, right) => left - right);
  const sums = marks.map(() => ({ cpu: 0, wall: 0 }));
  for (const task of events.filter((event) => own(event) && event.name === 'RunTask')) {
    const sum = sums[marks.findIndex((mark) => mark >= task.ts)];
    if (sum) {
      sum.cpu += (task.tdur ?? 0) / 1000;
      sum.wall += (task.dur ?? 0) / 1000;
    }
  }
  const phases = new Map<string, number>();
  for (const event of events.filter(own)) {
    const phase = (PHASES as Readonly<Record<string, string>>)[event.name];
    if (phase !== undefined) {
      const mean = (event.tdur ?? 0) / 1000 / Math.max(1, marks.length);
      phases.set(phase, (phases.get(phase) ?? 0) + mean);
    }
  }
  return { cpu: sums.map(({ cpu }) => cpu), wall: sums.map(({ wall }) => wall), phases };
}

async function traced(
  browser: Browser,
  shown: ConsolePage,
  work: () => Promise<void>,
): Promise<Frames> {
  await browser.startTracing(shown.page, {
    categories: ['devtools.timeline', 'disabled-by-default-devtools.timeline', 'toplevel'],
  });
  await work();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as {
    traceEvents: TraceEvent[];
  };
  return framesOf(traceEvents);
}

/** Runs `step` once per frame. */
async function eachFrame({ page }: ConsolePage, step: string): Promise<void> {
  await page.evaluate(`new Promise((resolve) => {
    let count = 0;
    const next = () => {
      if (count >= ${STEPS}) return resolve();
      (${step})(count);
      count += 1;
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  })`);
}

function figures(times: readonly number[]): string {
  const sorted = [...times].sort((left, right) => left - right);
  const at = (quantile: number): string =>
    (sorted[Math.floor(sorted.length * quantile)] ?? 0).toFixed(1);
  const slow = times.filter((time) => time > SLOW_MS).length;
  return (
    `median ${at(0.5)} ms, 95 % ${at(0.95)} ms, longest ${at(0.9999)} ms, ` +
    `${slow} over ${SLOW_MS} ms`
  );
}

function report(what: string, { cpu, wall, phases }: Frames): void {
  const means = [...phases].map(([phase, mean]) => `${phase} ${mean.toFixed(1)}`);
  process.stdout.write(
    `${what}: ${cpu.length} frames, CPU ${figures(cpu)}; wall clock ${figures(wall)}\n` +
      `  of CPU, in the mean: ${means.join(', ')} ms\n`,
  );
}

const [server, browser] = await Promise.all([startTestServer(), launchBrowser()]);
try {
  const shown = await ConsolePage.open(browser, server.url);
  const columns = Array.from({ length: COLUMNS }, (_, index) => `x + ${index} AS c${index}`);
  await shown.query(`SELECT ${columns.join(', ')} FROM long_sequence(10000)`);
  const grid = "document.querySelector('.grid')";
  for (const [what, step] of [
    ['scrolling down', `${grid}.scrollTop += 260`],
    ['scrolling right', `${grid}.scrollLeft += 240`],
    ['scrolling both', `${grid}.scrollBy(-130, 130)`],
  ] as const) {
    report(what, await traced(browser, shown, () => eachFrame(shown, `() => { ${step}; }`)));
  }
  await shown.editor.click();
  await shown.page.keyboard.press('Control+End');
  const typing = await traced(browser, shown, async () => {
    await shown.page.keyboard.type(
      ' WHERE x > 100 AND c1 < 5000 ORDER BY c2 LIMIT 50, 60 -- ok'.slice(0, KEYS),
      {
        delay: 40,
      },
    );
  });
  report('typing', typing);
  await shown.close();
} finally {
  await browser.close();
  await server.stop();
}
