/**
 * Functions that act on the server instead of its data: `SELECT reload_config()`. Told by the
 * words of the statement; inside other queries they are what the engine says they are.
 */
import { DatabaseError } from '../engine/error.js';
import type { Backends } from './backends.js';

/** What the server does for each; resolves to what the function returns. */
export type Operations = Readonly<Record<'reload_config' | 'reload_tls', () => Promise<boolean>>>;

/** Who calls, and what can be acted on. */
export interface OperationSetting {
  readonly user: { readonly key: string; readonly readOnly: boolean };
  /** Throws `AccessDenied` unless the caller may act on the server. */
  readonly authorise: () => void;
  /** The number of the caller's own connection; 0 where it has none. */
  readonly backend: number;
  readonly backends: Backends;
  /** Absent where there is no server around the database. */
  readonly operations: Operations | null;
}

/** A call of such a function. */
export interface Operation {
  readonly name: string;
  /** Resolves to what the function returns. */
  run(setting: OperationSetting): Promise<boolean | number>;
  /** What the statement is described by, before it runs. */
  readonly placeholder: boolean | number;
  /** Whether something is different afterwards. */
  readonly isChange: boolean;
}

const CALL = /^\s*select\s+(?:pg_catalog\.)?(\w+)\s*\(([\d\s,]*)\)\s*;?\s*$/i;

function reload(name: keyof Operations): Operation {
  return {
    name,
    placeholder: false,
    isChange: true,
    run: async ({ user, authorise, operations }) => {
      authorise();
      if (user.readOnly) {
        const message = `${name}() changes the server: this session is read-only`;
        throw new DatabaseError({ code: 'ReadOnly', message });
      }
      return operations === null ? false : operations[name]();
    },
  };
}

function stop(how: 'cancel' | 'terminate', backend: number): Operation {
  return {
    name: `pg_${how}_backend`,
    placeholder: false,
    isChange: true,
    run: async ({ user, authorise, backends }) => {
      await Promise.resolve();
      return backends.stop(how, backend, { ...user, authorise });
    },
  };
}

const OWN_NUMBER: Operation = {
  name: 'pg_backend_pid',
  placeholder: 0,
  isChange: false,
  run: ({ backend }) => Promise.resolve(backend),
};

/** The operation that a statement calls, `null` for every other statement. */
export function operationOf(text: string): Operation | null {
  const [, called = '', given = ''] = CALL.exec(text) ?? [];
  const name = called.toLowerCase();
  const numbers = given.trim() === '' ? [] : given.split(',').map((part) => part.trim());
  const [first] = numbers;
  if (first === undefined) {
    if (name === 'reload_config' || name === 'reload_tls') {
      return reload(name);
    }
    return name === 'pg_backend_pid' ? OWN_NUMBER : null;
  }
  // PostgreSQL takes how long to wait for the end, too.
  const most = name === 'pg_terminate_backend' ? 2 : 1;
  if (numbers.length > most || !numbers.every((number) => /^\d{1,10}$/.test(number))) {
    return null;
  }
  if (name === 'pg_cancel_backend' || name === 'pg_terminate_backend') {
    return stop(name === 'pg_cancel_backend' ? 'cancel' : 'terminate', Number(first));
  }
  return null;
}

/** The query that answers as the function would. */
export function operationAnswer({ name }: Operation, result: boolean | number): string {
  return `SELECT ${typeof result === 'number' ? `${result}::int` : result} AS ${name}`;
}
