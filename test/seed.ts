/**
 * The seed of a random test. In the suite it is constant, so that a run tests the current change
 * and does not depend on luck. SEED=n sets a different one, and long runs choose their own.
 */
export function suiteSeed(): number {
  const seed = Number(process.env['SEED'] ?? 1);
  process.stdout.write(`SEED=${seed}\n`);
  return seed;
}
