/**
 * The seed of a random test. In the suite the seed is constant, so the result depends only on the
 * tested change. SEED=n sets a different seed, and long runs choose their own.
 */
export function suiteSeed(): number {
  const seed = Number(process.env['SEED'] ?? 1);
  process.stdout.write(`SEED=${seed}\n`);
  return seed;
}
