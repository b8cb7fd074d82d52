/** What axe finds wrong with the page at present. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

import type { Page } from 'playwright-core';

const SOURCE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** Run in the page: everything of WCAG 2.2 A and AA, and the rules of good practice. */
const RUN = `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
  violations
    .filter(({ id, impact }) =>
      impact === 'serious' || impact === 'critical' || id === 'landmark-unique')
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html.slice(0, 160))))`;

/** Colours on their way from one theme to the next belong to neither. */
const STILL = `Promise.allSettled(document.getAnimations().map(({ finished }) => finished))
  .then(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))`;

/** Serious and critical violations, and regions of one name, one line for each place. */
export async function seriousViolations(page: Page): Promise<string[]> {
  // The protocol hands the text over: no script element, so the page's policy stays as it is.
  if (!(await page.evaluate<boolean>('"axe" in window'))) {
    await page.evaluate(await readFile(SOURCE, 'utf8'));
  }
  await page.evaluate(STILL);
  return await page.evaluate<string[]>(RUN);
}
