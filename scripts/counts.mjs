// What must fall and never rise, counted: `tidy` prints it, and fails where a count is above its
// ceiling in `ceilings.json`. `node scripts/tidy.mjs --lower` writes what was reached.
import { circles } from './rust-modules.mjs';
import { unclearWords } from './words.mjs';

/** Decisions are records and not rewritten; the words of generated files are their sources'. */
const NOT_READ = /^docs\/decisions\/|\.generated\./;
/** Folders whose words are clear: one more is a problem by its line. */
const CLEAR = /^(ts|docs|scripts)\/|^[\w.-]+$/;

/** @param {Map<string, string>} texts file → text, of every file that is read */
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
      'types written on both sides of the border': twins(texts).length,
      'patterns that tell the kind of a statement': statementPatterns,
      'random tests whose seed is luck': lucky(texts),
      'unclear words in Rust': inside(/^(crates|native)\//),
      'unclear words in tests': inside(/^test\//),
      'unclear words elsewhere': clear.length,
    },
  };
}

const PLAN_NODES = /\b(?:ExecutionPlan|UserDefinedLogicalNode|PlanNode)\b/;
/** `is::<FillExec>()` and the like. */
const NAMED_TEST = /\b(?:downcast(?:_ref|_mut)?|is)::<(?:\w+::)*\w*(?:Exec|Node|Plan|Scan)>\(/g;
/** `downcast_ref()`, whose type is that of what takes the result, and `is::<Self>()`. */
const UNNAMED_TEST = /\.(?:downcast(?:_ref|_mut)?(?:::<Self>)?|is::<Self>)\(\)/g;

/** Tests of what kind a node of a plan is, outside of Rust's own tests. */
function typeTests(texts) {
  return [...texts]
    .filter(([file]) => /^crates\/\w+\/src\/.*\.rs$/.test(file))
    .map(([, text]) => text.split('\n#[cfg(test)]\nmod test')[0])
    .flatMap((text) => [
      ...text.matchAll(NAMED_TEST),
      ...(PLAN_NODES.test(text) ? text.matchAll(UNNAMED_TEST) : []),
    ]).length;
}

/** A run of the suite judges the change at hand: seeds are 1, or what SEED says. */
function lucky(texts) {
  const chances = [
    [/^(crates|native)\/.*\.rs$/, /\brand::(?:random|rng)\b/g],
    [/\.test\.ts$/, /env\['SEED'\] \?\? (?!1\b)/g],
  ];
  return [...texts].flatMap(([file, text]) =>
    chances.flatMap(([files, chance]) => (files.test(file) ? [...text.matchAll(chance)] : [])),
  ).length;
}

/** Types of TypeScript that say again what a type of the border says in Rust. */
function twins(texts) {
  const names = (folder, pattern) =>
    [...texts]
      .filter(([file]) => folder.test(file) && !file.includes('.generated.'))
      .flatMap(([, text]) => [...text.matchAll(pattern)].map(([, name]) => name));
  const rust = new Set(names(/^crates\/(border|ast|types)\//, /^pub (?:struct|enum) (\w+)/gm));
  // One that is made from the generated type says nothing again.
  const own = /^export (?:interface|type) (\w+)(?![^;{]*\bborder\.)/gm;
  return names(/^ts\/(engine|border)\//, own).filter((name) => rust.has(name));
}
