/**
 * Every construct that may refer to another construct of its kind, as cycles of length 1, 2 and 3
 * and as a chain of 10,000. Add new constructs to `KINDS`.
 */
import type { Construct } from './constructs.js';

/** A definition and the definition that it refers to, or null if there is none. */
interface Link {
  readonly at: number;
  readonly to: number | null;
}

interface Kind {
  readonly name: string;
  /** Builds a statement that contains these definitions in order and uses the last one. */
  readonly of: (links: readonly Link[]) => string;
  /** Setup statements, if the definitions are separate statements. */
  readonly before?: (links: readonly Link[]) => readonly string[];
  /** Length of the chain, if creating 10,000 would take too long. */
  readonly chain?: number;
  /** Whether a chain of that length exceeds a limit. */
  readonly refusesChain?: boolean;
  /**
   * Whether the cycle is only apparent, so the statement is valid: each definition refers to the
   * object that previously had that name.
   */
  readonly hasMeaning?: boolean;
}

const CYCLES: readonly number[] = [1, 2, 3];
const CHAIN = 10_000;

/** Comma-separated definitions. */
function defined(links: readonly Link[], define: (link: Link) => string): string {
  return links.map((link) => define(link)).join(', ');
}

const last = (links: readonly Link[]): number => links.at(-1)?.at ?? 0;

const windows = (links: readonly Link[], base: string): string =>
  `select count(*) over w${last(links)} from sb window
    ${defined(links, ({ at, to }) => `w${at} as (${to === null ? base : `w${to}`})`)}`;

const tables = (links: readonly Link[], word: string): string =>
  `with ${word} ${defined(
    links,
    ({ at, to }) => `c${at} as (select * from ${to === null ? 'sb' : `c${to}`})`,
  )} select count() from c${last(links)}`;

const declared = (
  links: readonly Link[],
  value: (of: string) => string,
  first: string,
  use: (name: string) => string,
): string =>
  `declare ${defined(links, ({ at, to }) => `@v${at} := ${to === null ? first : value(`@v${to}`)}`)}
    ${use(`@v${last(links)}`)}`;

/** Each definition is in a scope nested in the previous one. */
const scopes = (links: readonly Link[]): string => {
  const names = links.length;
  const inner = links
    .map(({ to }, at) => `(declare @v${at} := @v${to ?? 'x'} select @v${at} x`)
    .join(' from ');
  const outer = Array.from({ length: names }, (_, at) => `@v${at} := @x + ${at}`).join(', ');
  return `declare @x := 1, @vx := 1, ${outer} select * from ${inner}${')'.repeat(names)}`;
};

const KINDS: readonly Kind[] = [
  { name: 'named windows', of: (links) => windows(links, 'order by i') },
  { name: 'named windows without clauses', of: (links) => windows(links, '') },
  { name: 'common tables', of: (links) => tables(links, '') },
  { name: 'recursive common tables', of: (links) => tables(links, 'recursive') },
  {
    name: 'declared values',
    of: (links) =>
      declared(
        links,
        (of) => of,
        '1',
        (name) => `select ${name}`,
      ),
  },
  {
    name: 'declared expressions',
    of: (links) =>
      declared(
        links,
        (of) => `${of} + 1`,
        '1',
        (name) => `select ${name}`,
      ),
  },
  {
    name: 'declared conditions',
    of: (links) =>
      declared(
        links,
        (of) => `dateadd('s', 1, ${of})`,
        'now()',
        (name) => `select count() from bt where ts > ${name}`,
      ),
  },
  {
    name: 'declared queries',
    of: (links) =>
      declared(
        links,
        (of) => `(select * from ${of})`,
        '(select * from sb)',
        (name) => `select count() from ${name}`,
      ),
  },
  { name: 'declared values of scopes', of: scopes, chain: 60, hasMeaning: true },
  {
    name: 'aliases of a list',
    of: (links) =>
      `select ${defined(links, ({ at, to }) => `${to === null ? 'i' : `a${to}`} + 1 a${at}`)}
        from sb limit 1`,
  },
  {
    name: 'aliases of groups',
    of: (links) =>
      `select ${defined(links, ({ at, to }) => `${to === null ? 'i' : `a${to}`} a${at}`)}, count()
        from sb group by a${last(links)} order by a${last(links)} limit 1`,
  },
  {
    name: 'views',
    of: (links) =>
      links[0]?.to === null
        ? viewOf(last(links), last(links) - 1)
        : viewOf(links[0]?.at ?? 0, links[0]?.to ?? links.length),
    before: (links) => [
      ...links.slice(0, links[0]?.to === null ? -1 : undefined).map(({ at }) => viewOf(at, at - 1)),
      ...(links[0]?.to === null ? [] : links.slice(1).toReversed()).map(({ at, to }) =>
        viewOf(at, to ?? 0),
      ),
    ],
    // The last view is one level deeper than allowed.
    chain: 33,
    refusesChain: true,
  },
  {
    // The first view is dropped and re-created over the last one, which closes the cycle.
    name: 'materialized views',
    of: (links) =>
      links.length === 1
        ? rollup('alone', 0, 'alone0')
        : `refresh materialized view roll${links.length}_1 full`,
    before: (links) => {
      const prefix = `roll${links.length}_`;
      const created = links.map(({ at }) =>
        rollup(prefix, at, at === 0 ? 'bt' : `${prefix}${at - 1}`),
      );
      const ring = [
        `drop materialized view ${prefix}0`,
        rollup(prefix, 0, `${prefix}${last(links)}`),
      ];
      return links.length === 1 ? [] : links.at(-1)?.to === 0 ? [...created, ...ring] : created;
    },
    chain: 20,
  },
  {
    name: 'live views',
    of: (links) => liveOf(last(links), `live${links.at(-1)?.to ?? 0}`),
    before: (links) =>
      links.slice(0, -1).map(({ at }) => liveOf(at, at === 0 ? 'bt' : `live${at - 1}`)),
    chain: 3,
    refusesChain: true,
  },
  {
    name: 'defaults of columns',
    of: (links) =>
      `create table defaults${links.length} (${defined(
        links,
        ({ at, to }) => `c${at} long default ${to === null ? '1' : `c${to}`}`,
      )})`,
    chain: 1_000,
    refusesChain: true,
  },
  {
    name: 'checks of columns',
    of: (links) =>
      `create table checks${links.length} (${defined(
        links,
        ({ at, to }) => `c${at} long check (c${at} > c${to ?? at})`,
      )})`,
    chain: 1_000,
    hasMeaning: true,
  },
  {
    name: 'keys of other tables',
    of: (links) => keyed(links, links.length - 1),
    before: (links) => links.slice(0, -1).map((_, at) => keyed(links, at)),
    chain: 50,
    hasMeaning: true,
  },
  {
    name: 'conditions of joins',
    of: (links) => {
      const joined = links.map(
        ({ at, to }) => `join sb j${at} on j${at}.i = ${to === null ? 'sb' : `j${to}`}.i`,
      );
      return `select count() from sb ${joined.join(' ')}`;
    },
    // A condition on only one side is valid.
    hasMeaning: true,
    refusesChain: true,
  },
  {
    // Each join refers to the previous one by its alias.
    name: 'joins by a horizon',
    of: (links) => {
      const joined = links.map(({ at }) => `horizon join bt q${at} on (s)`);
      const read = links.map(({ to }) => `q${to ?? 0}.l`);
      return `select h.offset, sum(${read.join(' + ')}) from bt ${joined.join(' ')}
        range from 0s to 1s step 1s as h`;
    },
    hasMeaning: true,
    refusesChain: true,
  },
  {
    name: 'cursors',
    of: (links) =>
      `declare k${last(links)} cursor with hold for fetch all from k${links.at(-1)?.to ?? 0}`,
    chain: 100,
    refusesChain: true,
  },
  {
    name: 'names of PIVOT',
    of: (links) => `select * from (select i, s from bt) pivot (
      ${defined(links, ({ at, to }) => `sum(${to === null ? 'i' : `p${to}`}) p${at}`)}
      for s in ('k1', 'k2'))`,
    chain: 1_000,
    refusesChain: true,
  },
];

const viewOf = (at: number, to: number): string =>
  `create or replace view ring${at} as (select * from ${to < 0 ? 'sb' : `ring${to}`})`;

const keyed = (links: readonly Link[], at: number): string => {
  const name = (of: number): string => `keyed${links.length}_${links[0]?.to ?? 'no'}_${of}`;
  const other = name(links[at]?.to ?? at);
  return `create table ${name(at)} (k long primary key, o long references ${other})`;
};

const rollup = (prefix: string, at: number, base: string): string =>
  `create materialized view ${prefix}${at} as
    (select ts, last(i) i from ${base} sample by ${at + 1}s) partition by day`;

const liveOf = (at: number, base: string): string =>
  `create live view live${at} flush every 100ms start from beginning as
    (select ts, i, count() over (partition by i order by ts) n from ${base})`;

/** Nesting depth beyond any realistic statement. */
const NESTED = 100_000;

const nested = (
  name: string,
  [open, inner, close]: readonly [string, string, string],
  depth = NESTED,
): Construct => ({
  name: `${name} nested very deep`,
  of: () => `select ${open.repeat(depth)}${inner}${close.repeat(depth)} x from sb limit 1`,
  counts: [depth],
  acceptsAnyCount: true,
  isRefused: true,
});

export const NESTINGS: readonly Construct[] = [
  nested('parentheses', ['(', 'i', ')']),
  nested('value queries', ['(select ', '1', ')']),
  nested('conditions', ['case when i then ', 'i', ' end'], 45_000),
  nested('arrays', ['array[', '1.0', ']']),
  nested('calls', ['abs(', 'i', ')']),
  nested('negations', ['- ', 'i', '']),
];

/** Definitions that each refer to the next, with the last referring to the first. */
const cycle = (length: number): readonly Link[] =>
  Array.from({ length }, (_, at) => ({ at, to: (at + 1) % length }));

/** Definitions that each refer to the previous one. */
const chain = (length: number): readonly Link[] =>
  Array.from({ length }, (_, at) => ({ at, to: at === 0 ? null : at - 1 }));

export const REFERENCES: readonly Construct[] = KINDS.flatMap(
  ({ name, of, before, chain: longest = CHAIN, hasMeaning = false, refusesChain = false }) => [
    {
      name: `${name} in a cycle`,
      of: (length: number) => of(cycle(length)),
      ...(before === undefined ? {} : { before: (length: number) => before(cycle(length)) }),
      counts: CYCLES,
      acceptsAnyCount: true,
      isRefused: !hasMeaning,
    },
    {
      name: `${name} in a chain`,
      of: (length: number) => of(chain(length)),
      ...(before === undefined ? {} : { before: (length: number) => before(chain(length)) }),
      counts: [longest],
      acceptsAnyCount: true,
      isRefused: refusesChain,
    },
  ],
);
