// Counts that must not increase. `tidy` prints them and fails if one exceeds its limit in
// `ceilings.json`. `node scripts/tidy.mjs --lower` stores the current counts.
import { circles } from './rust-modules.mjs';
import { unclearWords } from './words.mjs';

/**
 * Not counted: decision records, which are never rewritten, and generated files, whose words come
 * from their sources.
 */
const NOT_READ = /^docs\/decisions\/|\.generated\./;
/** Folders without unclear words. Any new unclear word there is reported with its line. */
const CLEAR = /^(ts|docs|scripts)\/|^[\w.-]+$/;

/** @param {Map<string, string>} texts file → text, for every counted file */
export function counts(texts, statementPatterns) {
  const words = [...texts]
    .filter(([file]) => !NOT_READ.test(file))
    .flatMap(([file, text]) => unclearWords(file, text).map((found) => ({ file, ...found })));
  const clear = words.filter(({ file }) => CLEAR.test(file));
  const inside = (pattern) => words.filter(({ file }) => pattern.test(file)).length;
  return {
    words: clear,
    numbers: {
      'type tests on plan nodes': typeTests(texts),
      'files in circles of imports, Rust': circles(texts).flat().length,
      'types written on both sides of the border': duplicatedTypes(texts).length,
      'patterns that tell the kind of a statement': statementPatterns,
      'random tests whose seed is luck': lucky(texts),
      'unclear words in Rust': inside(/^(crates|native)\//),
      'unclear words in tests': inside(/^test\//),
      'unclear words elsewhere': clear.length,
    },
  };
}

const PLAN_NODES = /\b(?:ExecutionPlan|UserDefinedLogicalNode|PlanNode)\b/;
/** Matches `is::<FillExec>()` and similar tests. */
const NAMED_TEST = /\b(?:downcast(?:_ref|_mut)?|is)::<(?:\w+::)*\w*(?:Exec|Node|Plan|Scan)>\(/g;
/** Matches `downcast_ref()` with an inferred type, and `is::<Self>()`. */
const UNNAMED_TEST = /\.(?:downcast(?:_ref|_mut)?(?:::<Self>)?|is::<Self>)\(\)/g;

/** Counts type tests on plan nodes, except in Rust's unit tests. */
function typeTests(texts) {
  return [...texts]
    .filter(([file]) => /^crates\/\w+\/src\/.*\.rs$/.test(file))
    .map(([, text]) => text.split('\n#[cfg(test)]\nmod test')[0])
    .flatMap((text) => [
      ...text.matchAll(NAMED_TEST),
      ...(PLAN_NODES.test(text) ? text.matchAll(UNNAMED_TEST) : []),
    ]).length;
}

/**
 * Counts random seeds. The suite must produce the same result on every run, so every seed is either
 * 1 or taken from SEED.
 */
function lucky(texts) {
  const chances = [
    [/^(crates|native)\/.*\.rs$/, /\brand::(?:random|rng)\b/g],
    [/^crates\/.*\.rs$/, /env::var\("SEED"\)[^}]*\bUNIX_EPOCH\b/g],
    [/\.test\.ts$/, /env\['SEED'\] \?\? (?!1\b)/g],
  ];
  return [...texts].flatMap(([file, text]) =>
    chances.flatMap(([files, chance]) => (files.test(file) ? [...text.matchAll(chance)] : [])),
  ).length;
}

/** Counts TypeScript types that duplicate a Rust type in the native interface. */
function duplicatedTypes(texts) {
  const names = (folder, pattern) =>
    [...texts]
      .filter(([file]) => folder.test(file) && !file.includes('.generated.'))
      .flatMap(([, text]) => [...text.matchAll(pattern)].map(([, name]) => name));
  const rust = new Set(names(/^crates\/(border|ast|types)\//, /^pub (?:struct|enum) (\w+)/gm));
  // A type derived from the generated type is not a duplicate.
  const own = /^export (?:interface|type) (\w+)(?![^;{]*\bborder\.)/gm;
  return names(/^ts\/(engine|border)\//, own).filter((name) => rust.has(name));
}
