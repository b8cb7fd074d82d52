/**
 * How long frames take while a wide grid is scrolled and while a statement is typed:
 * `npm run console-frames`. Told, not asserted: it depends on the machine and on what else it does.
 */
import { startTestServer } from '../golden/server.js';
import { ConsolePage, launchBrowser } from './console-page.js';

const COLUMNS = 500;
const STEPS = 120;
const SLOW_MS = 50;

/** Runs `step` once per frame and collects the time between frames, in milliseconds. */
async function frames({ page }: ConsolePage, step: string): Promise<number[]> {
  return await page.evaluate<number[]>(`new Promise((resolve) => {
    const times = [];
    let before = performance.now();
    let count = 0;
    const next = (now) => {
      times.push(now - before);
      before = now;
      if (count >= ${STEPS}) return resolve(times.slice(1));
      (${step})(count);
      count += 1;
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  })`);
}

function tell(what: string, times: readonly number[]): void {
  const sorted = [...times].sort((left, right) => left - right);
  const at = (share: number): string => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1);
  const slow = times.filter((time) => time > SLOW_MS).length;
  process.stdout.write(
    `${what}: ${times.length} frames, median ${at(0.5)} ms, 99 % ${at(0.99)} ms, ` +
      `longest ${at(0.9999)} ms, ${slow} over ${SLOW_MS} ms\n`,
  );
}

const [server, browser] = await Promise.all([startTestServer(), launchBrowser()]);
try {
  const shown = await ConsolePage.open(browser, server.url);
  const columns = Array.from({ length: COLUMNS }, (_, index) => `x + ${index} AS c${index}`);
  await shown.query(`SELECT ${columns.join(', ')} FROM long_sequence(10000)`);
  const grid = "document.querySelector('.grid')";
  tell('scrolling down', await frames(shown, `() => { ${grid}.scrollTop += 260; }`));
  tell('scrolling right', await frames(shown, `() => { ${grid}.scrollLeft += 240; }`));
  tell('scrolling both', await frames(shown, `() => { ${grid}.scrollBy(-130, 130); }`));
  await shown.close();
} finally {
  await browser.close();
  await server.stop();
}
