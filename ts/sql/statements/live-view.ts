/** Live views: CREATE, ALTER. */
import type { LiveClauses, LiveStart, Name, NodeId } from '../ast.generated.js';
import type { Parser } from '../parser/parser.js';
import { ifNotExists, partitionUnit } from './table-clauses.js';
import { duration, text, viewQuery } from './view.js';

/** What may stand in any order behind FLUSH EVERY. */
interface Options {
  memory: Name | null;
  unit: Name | null;
  begin: LiveStart | null;
}

/** `CREATE LIVE VIEW v FLUSH EVERY d … START FROM s … AS query [OWNED BY e]`, at LIVE. */
export function parseCreateLive(p: Parser, start: number): NodeId {
  p.advance(2);
  const if_not_exists = ifNotExists(p);
  const name = p.tableName("view name or 'if' expected");
  p.expect('FLUSH', "'flush every' expected");
  p.expect('EVERY', "'every' expected");
  const flush_every = duration(p);
  const { memory: in_memory, unit: partition_by, begin } = options(p);
  if (begin === null) {
    return p.fail("'start from' expected");
  }
  p.expect('AS', "'in memory', 'partition by', 'start from' or 'as' expected");
  const { query, text: query_text } = viewQuery(p);
  let owner: Name | null = null;
  if (p.take('OWNED')) {
    p.expect('BY');
    owner = p.dottedName('owner expected');
  }
  const live: LiveClauses = { flush_every, in_memory, partition_by, start: begin, owner };
  const node = { name, query, query_text, if_not_exists, or_replace: false, live } as const;
  const kind = { kind: 'CreateView', what: 'LiveView' } as const;
  return p.add({ ...kind, ...node, options: [], material: null }, start, p.lastEnd(), query);
}

function options(p: Parser): Options {
  const found: Options = { memory: null, unit: null, begin: null };
  for (;;) {
    const at = p.start();
    const once = (known: unknown, clause: string): void => {
      if (known !== null) {
        p.failAt(`duplicate ${clause} clause`, at, p.lastEnd());
      }
    };
    if (p.take('IN', 'MEMORY')) {
      once(found.memory, 'IN MEMORY');
      found.memory = duration(p);
    } else if (p.take('PARTITION', 'BY')) {
      once(found.unit, 'PARTITION BY');
      found.unit = partitionUnit(p);
    } else if (p.take('START', 'FROM')) {
      once(found.begin, 'START FROM');
      found.begin = liveStart(p);
    } else {
      return found;
    }
  }
}

function liveStart(p: Parser): LiveStart {
  if (p.take('NOW')) {
    return { start: 'Now' };
  }
  if (p.take('BEGINNING')) {
    return { start: 'Beginning' };
  }
  return { start: 'At', instant: text(p, "'now', 'beginning' or timestamp expected") };
}

/** `ALTER LIVE VIEW v RESUME WAL | SUSPEND WAL`, at ALTER. */
export function parseAlterLive(p: Parser): NodeId {
  const start = p.start();
  p.advance(3);
  const view = p.tableName('view name expected');
  const suspend = p.take('SUSPEND');
  if (!suspend) {
    p.expect('RESUME', "'resume' or 'suspend' expected");
  }
  p.expect('WAL');
  return p.add({ kind: 'AlterLiveView', view, suspend }, start, p.lastEnd());
}
