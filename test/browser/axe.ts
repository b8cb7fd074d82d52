/** The violations that axe finds on the current page. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

import type { Page } from 'playwright-core';

const SOURCE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/**
 * The program that runs in the page. It applies all rules of WCAG 2.2 A and AA, and the
 * best-practice rules.
 */
const RUN = `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
  violations
    .filter(({ id, impact }) =>
      impact === 'serious' || impact === 'critical' || id === 'landmark-unique')
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html.slice(0, 160))))`;

/** Waits for transitions to end, because intermediate colours are not part of any theme. */
const STILL = `Promise.allSettled(document.getAnimations().map(({ finished }) => finished))
  .then(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))`;

/** Returns serious and critical violations and duplicate region names, one line per element. */
export async function seriousViolations(page: Page): Promise<string[]> {
  // Injects the script through the browser protocol, which leaves the page's content policy
  // unchanged.
  if (!(await page.evaluate<boolean>('"axe" in window'))) {
    await page.evaluate(await readFile(SOURCE, 'utf8'));
  }
  await page.evaluate(STILL);
  return await page.evaluate<string[]>(RUN);
}
