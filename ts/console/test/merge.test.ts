/** Tests merging two users' changes to the same notebook. */
import test from 'ava';
import fc from 'fast-check';

import { read, write } from '../src/cells/file.js';
import { EMPTY, type Cell, type Notebook } from '../src/cells/model.js';
import { merge, type Choice } from '../src/saved/merge.js';

function sql(name: string, text: string): Cell {
  return { kind: 'sql', id: name, name, text, view: 'grid' };
}

function text(content: string): Cell {
  return { kind: 'markdown', id: content, text: content };
}

function notebook(...cells: Cell[]): Notebook {
  return { ...EMPTY, cells };
}

const NONE = new Map<string, Choice>();

function texts({ cells }: Notebook): string[] {
  return cells.map((cell) => (cell.kind === 'sql' ? `${cell.name}: ${cell.text}` : cell.text));
}

const BASE = notebook(text('# T'), sql('a', '1'), text('about a'), sql('b', '2'), sql('c', '3'));

test('a change, addition, deletion or move on one side is merged', (t) => {
  const mine = notebook(text('# T'), sql('a', '10'), text('about a'), sql('b', '2'), sql('d', '4'));
  const theirs = notebook(
    text('# Title'),
    sql('a', '1'),
    sql('b', '20'),
    sql('e', '5'),
    sql('c', '3'),
  );
  const { conflicts, merged } = merge(BASE, mine, theirs);
  t.deepEqual(conflicts, []);
  t.deepEqual(texts(merged(NONE)), ['# Title', 'a: 10', 'b: 20', 'd: 4', 'e: 5']);
});

test('a move is kept if the other side did not move cells', (t) => {
  const mine = notebook(sql('c', '3'), text('# T'), sql('a', '1'), text('about a'), sql('b', '2'));
  const theirs = notebook(
    text('# T'),
    sql('a', '1'),
    text('about a'),
    sql('b', '2'),
    sql('c', '30'),
  );
  const { conflicts, merged } = merge(BASE, mine, theirs);
  t.deepEqual(conflicts, []);
  t.deepEqual(texts(merged(NONE)), ['c: 30', '# T', 'a: 1', 'about a', 'b: 2']);
});

test('a cell changed by both sides is a conflict, and both versions can be kept', (t) => {
  const { conflicts, merged } = merge(
    notebook(sql('a', '1'), sql('a_1', 'x')),
    notebook(sql('a', 'mine'), sql('a_1', 'x')),
    notebook(sql('a', 'theirs'), sql('a_1', 'x')),
  );
  t.like(conflicts, [{ label: 'Cell a', mine: 'mine', theirs: 'theirs', canKeepBoth: true }]);
  const key = conflicts[0]?.key ?? '';
  const chosen = (choice: Choice): string[] => texts(merged(new Map([[key, choice]])));
  t.deepEqual(chosen('mine'), ['a: mine', 'a_1: x']);
  t.deepEqual(chosen('theirs'), ['a: theirs', 'a_1: x']);
  t.deepEqual(chosen('both'), ['a: theirs', 'a_2: mine', 'a_1: x']);
});

test('a cell deleted on one side and changed on the other is a conflict', (t) => {
  const { conflicts, merged } = merge(notebook(sql('a', '1')), notebook(), notebook(sql('a', '2')));
  t.like(conflicts, [{ mine: undefined, theirs: '2', canKeepBoth: false }]);
  const key = conflicts[0]?.key ?? '';
  t.deepEqual(texts(merged(new Map([[key, 'mine']]))), []);
  t.deepEqual(texts(merged(new Map([[key, 'theirs']]))), ['a: 2']);
});

test('settings and variables are merged separately', (t) => {
  const variable = (value: string): Notebook['variables'] => [{ name: 'v', kind: 'text', value }];
  const base: Notebook = { ...BASE, variables: variable('1') };
  const mine: Notebook = { ...base, layout: 'grid', variables: variable('mine') };
  const theirs: Notebook = { ...base, refresh: 5, variables: variable('theirs') };
  const { conflicts, merged } = merge(base, mine, theirs);
  t.like(conflicts, [{ key: '@v', label: 'Variable @v' }]);
  const result = merged(new Map([['@v', 'mine']]));
  t.like(result, { layout: 'grid', refresh: 5, variables: variable('mine') as never });
});

const cells = fc
  .array(
    fc.oneof(
      fc.record({
        name: fc.constantFrom('a', 'b', 'c', 'd'),
        text: fc.constantFrom('1', '2', '3'),
      }),
      fc.record({ text: fc.constantFrom('x', 'y', 'z') }),
    ),
    { maxLength: 7 },
  )
  .map((all) => {
    const seen = new Set<string>();
    return notebook(
      ...all.flatMap((one): Cell[] => {
        if (!('name' in one)) {
          return [text(one.text)];
        }
        const isNew = !seen.has(one.name);
        seen.add(one.name);
        return isNew ? [sql(one.name, one.text)] : [];
      }),
    );
  });

test('merging keeps every change made on only one side', (t) => {
  fc.assert(
    fc.property(cells, cells, cells, (base, mine, theirs) => {
      const { conflicts, merged } = merge(base, mine, theirs);
      const both = new Map(
        conflicts.map(({ key, canKeepBoth, mine: own }): [string, Choice] => [
          key,
          canKeepBoth ? 'both' : own === undefined ? 'theirs' : 'mine',
        ]),
      );
      const result = merged(both);
      const again = read(write(result));
      t.deepEqual(texts(again), texts(result));
      const before = JSON.stringify(texts(result));
      for (const cell of [...mine.cells, ...theirs.cells]) {
        const inBase = base.cells.some(({ text: was }) => was === cell.text);
        if (!inBase) {
          t.true(before.includes(cell.text), `${cell.text} is missing from ${before}`);
        }
      }
      t.deepEqual(texts(merge(base, mine, base).merged(NONE)), texts(mine));
      t.deepEqual(texts(merge(base, base, theirs).merged(NONE)), texts(theirs));
      t.deepEqual(texts(merge(base, mine, mine).merged(NONE)), texts(mine));
    }),
    { numRuns: 500 },
  );
});
