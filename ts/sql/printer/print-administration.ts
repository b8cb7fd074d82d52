/** Prints statements about views, COPY and backups. */
import type {
  BackupStatement,
  CopyStatement,
  ExpireRows,
  LiveClauses,
  MaterialClauses,
  Name,
  Node,
  OptionValue,
  RefreshMode,
  RefreshPolicy,
  ViewAction,
} from '../ast.generated.js';
import {
  assertNever,
  expression,
  expressionList,
  printName,
  printValue,
  type Printer,
} from './print-expression.js';

/** Object kinds as named in statements. */
export const KINDS = {
  Table: 'TABLE',
  View: 'VIEW',
  MaterializedView: 'MATERIALIZED VIEW',
  LiveView: 'LIVE VIEW',
} as const;

/** Returns `WORDS value`, or nothing if there is no value. */
function clause(words: string, value: string | null): string[] {
  return value === null ? [] : [`${words} ${value}`];
}

const named = (name: Name | null): string | null => (name === null ? null : printName(name));
const valued = (name: Name | null): string | null => (name === null ? null : printValue(name));

export function printCreateView(
  printer: Printer,
  node: Extract<Node, { kind: 'CreateView' }>,
): string {
  const [first] = node.options;
  const body = `AS (${printer.query(node.query)})`;
  if (first?.name.text === 'ALTER') {
    return `ALTER VIEW ${printName(node.name)} ${body}`;
  }
  const { live, material } = node;
  const isTemporary = /^temp(?:orary)?$/i.test(first?.name.text ?? '');
  return [
    node.or_replace ? 'CREATE OR REPLACE' : 'CREATE',
    ...(isTemporary ? ['TEMPORARY'] : []),
    KINDS[node.what],
    ...(node.if_not_exists ? ['IF NOT EXISTS'] : []),
    printName(node.name),
    ...clause('WITH BASE', named(material?.base ?? null)),
    ...(material?.refresh ? [printRefresh(material.refresh)] : []),
    ...(live === null ? [] : liveHead(live)),
    body,
    ...(material === null ? [] : materialTail(printer, material)),
    ...clause('OWNED BY', named(first?.value ?? live?.owner ?? null)),
  ].join(' ');
}

function liveHead(live: LiveClauses): string[] {
  const { start } = live;
  return [
    `FLUSH EVERY ${live.flush_every.text}`,
    ...clause('IN MEMORY', live.in_memory?.text ?? null),
    ...clause('PARTITION BY', live.partition_by?.text ?? null),
    `START FROM ${start.start === 'At' ? printValue(start.instant) : start.start.toUpperCase()}`,
  ];
}

function materialTail(printer: Printer, material: MaterialClauses): string[] {
  const { timestamp, partition_by: unit, ttl, expire, volume, owner } = material;
  return [
    ...(timestamp === null ? [] : [`TIMESTAMP(${printName(timestamp)})`]),
    ...clause('PARTITION BY', unit?.text ?? null),
    ...clause('TTL', ttl?.text ?? null),
    ...(expire === null ? [] : [printExpire(printer, expire)]),
    ...clause('IN VOLUME', named(volume)),
    ...clause('OWNED BY', named(owner)),
  ];
}

function printRefresh(refresh: RefreshPolicy): string {
  const { trigger, period } = refresh;
  const clauses = ['REFRESH'];
  if (trigger !== null) {
    clauses.push(
      trigger.trigger === 'Every'
        ? `EVERY ${trigger.interval.text}`
        : trigger.trigger.toUpperCase(),
    );
  }
  if (refresh.deferred) {
    clauses.push('DEFERRED');
  }
  clauses.push(...clause('START', valued(refresh.start)));
  clauses.push(...clause('TIME ZONE', valued(refresh.time_zone)));
  if (period?.period === 'SampleByInterval') {
    clauses.push('PERIOD (SAMPLE BY INTERVAL)');
  } else if (period !== null) {
    const inner = [
      `LENGTH ${period.length.text}`,
      ...clause('TIME ZONE', valued(period.time_zone)),
      ...clause('DELAY', valued(period.delay)),
    ];
    clauses.push(`PERIOD (${inner.join(' ')})`);
  }
  return clauses.join(' ');
}

function printExpire(printer: Printer, { rule, cleanup }: ExpireRows): string {
  const keys = (list: readonly number[]): string =>
    list.length === 0 ? '' : ` PARTITION BY ${expressionList(printer, list)}`;
  let text: string;
  switch (rule.rule) {
    case 'When':
      text = `WHEN ${expression(printer, rule.condition)}`;
      break;
    case 'KeepLatest': {
      const on = rule.timestamp === null ? '' : ` ON ${expression(printer, rule.timestamp)}`;
      text = `KEEP LATEST${on}${keys(rule.keys)}`;
      break;
    }
    case 'KeepExtreme': {
      const count = rule.count === null ? '' : `${expression(printer, rule.count)} `;
      const which = rule.highest ? 'HIGHEST' : 'LOWEST';
      const column = expression(printer, rule.column);
      text = `KEEP ${count}${which} ON ${column}${keys(rule.keys)}`;
      break;
    }
    default:
      text = assertNever(rule);
  }
  return [`EXPIRE ROWS ${text}`, ...clause('CLEANUP EVERY', cleanup?.text ?? null)].join(' ');
}

export function printViewAction(printer: Printer, action: ViewAction): string {
  switch (action.action) {
    case 'SetRefresh':
      return `SET ${printRefresh(action.refresh)}`;
    case 'SetRefreshLimit':
      return `SET REFRESH LIMIT ${action.limit.text}`;
    case 'SetTtl':
      return `SET TTL ${action.ttl.text}`;
    case 'SetExpire':
      return `SET ${printExpire(printer, action.expire)}`;
    case 'DropExpire':
      return 'DROP EXPIRE';
    case 'AddIndex': {
      const options = action.options.map((option) => ` ${printIndexOption(option)}`);
      return `ALTER COLUMN ${printName(action.column)} ADD INDEX${options.join('')}`;
    }
    case 'DropIndex':
      return `ALTER COLUMN ${printName(action.column)} DROP INDEX`;
    case 'ResumeWal':
      return ['RESUME WAL', ...clause('FROM TRANSACTION', action.from?.text ?? null)].join(' ');
    default:
      return assertNever(action);
  }
}

/** Prints an option of an index or a column; lists are enclosed in parentheses. */
export function printIndexOption({ name, value }: OptionValue): string {
  const enclosed = /^(?:include|parquet)$/i.test(name.text);
  const text = value?.text ?? '';
  if (name.text === 'IDENTITY') {
    return `GENERATED BY DEFAULT AS IDENTITY (${text})`;
  }
  if (name.text === 'COLLATE' && value !== null) {
    return `COLLATE ${printName(value)}`;
  }
  return `${name.text} ${enclosed ? `(${text})` : text}`;
}

export function printRefreshMode(printer: Printer, mode: RefreshMode): string {
  switch (mode.mode) {
    case 'Default':
      return '';
    case 'Range': {
      const [from, to] = [expression(printer, mode.from), expression(printer, mode.to)];
      return ` RANGE FROM ${from} TO ${to}`;
    }
    default:
      return ` ${mode.mode.toUpperCase()}`;
  }
}

export function printCopy(printer: Printer, copy: CopyStatement): string {
  switch (copy.copy) {
    case 'Import':
      return [
        `COPY ${printName(copy.table)} FROM ${printValue(copy.file)}`,
        ...copyOptions(copy.options),
      ].join(' ');
    case 'Export': {
      const query = copy.query === null ? '' : `(${printer.query(copy.query)})`;
      const source = copy.table === null ? query : printName(copy.table);
      const head = `COPY ${source} TO ${printValue(copy.path)}`;
      return [head, ...copyOptions(copy.options)].join(' ');
    }
    case 'Cancel':
      return `COPY ${printValue(copy.id)} CANCEL`;
    default:
      return assertNever(copy);
  }
}

function copyOptions(options: readonly OptionValue[]): string[] {
  if (options.length === 0) {
    return [];
  }
  const words = options.map(({ name, value }) =>
    value === null ? name.text : `${name.text} ${printValue(value)}`,
  );
  return [`WITH ${words.join(' ')}`];
}

const BACKUPS = {
  CheckpointCreate: 'CHECKPOINT CREATE',
  CheckpointRelease: 'CHECKPOINT RELEASE',
  SnapshotPrepare: 'SNAPSHOT PREPARE',
  SnapshotComplete: 'SNAPSHOT COMPLETE',
  Database: 'BACKUP DATABASE',
  Abort: 'BACKUP ABORT',
} as const;

export function printBackup(backup: BackupStatement): string {
  return backup.action === 'Tables'
    ? `BACKUP TABLE ${backup.tables.map(printName).join(', ')}`
    : BACKUPS[backup.action];
}
