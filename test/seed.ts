/**
 * The seed of a random test. In the suite it is the same in every run, so that a run judges the
 * change at hand and not its luck; SEED=n sets another, and the long runs choose theirs.
 */
export function suiteSeed(): number {
  const seed = Number(process.env['SEED'] ?? 1);
  process.stdout.write(`SEED=${seed}\n`);
  return seed;
}
