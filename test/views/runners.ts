/** Ways to run statements: on a server, or on an in-process database. */
import { mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import {
  type Database,
  DatabaseError,
  openDatabase,
  type Statement,
} from '../../ts/engine/index.js';
import { parse } from '../../ts/sql/index.js';
import type { TestServer } from '../golden/server.js';
import { rows, run } from '../scenario/statements.js';

export interface Runner {
  run(statement: string): Promise<void>;
  rows(query: string): Promise<readonly (readonly unknown[])[]>;
}

export function serverRunner(server: TestServer): Runner {
  return {
    run: async (statement) => {
      await run(server, statement);
    },
    rows: (query) => rows(server, query),
  };
}

const MAX_ATTEMPTS = 10;
const MEMORY = '/dev/shm';
const MIN_MEMORY_BYTES = 2 ** 30;

/** An in-process database that can be closed and reopened. Queries stay prepared. */
export class DatabaseRunner implements Runner {
  readonly #root: string;
  #database: Database;
  readonly #queries = new Map<string, Statement>();

  private constructor(root: string, database: Database) {
    this.#root = root;
    this.#database = database;
  }

  static async open(): Promise<DatabaseRunner> {
    const root = await mkdtemp(join(await quickFolder(), 'tidemark-histories-'));
    return new DatabaseRunner(root, await open(root));
  }

  async reopen(): Promise<void> {
    this.#forget();
    await this.#database.close();
    this.#database = await open(this.#root);
  }

  async remove(): Promise<void> {
    this.#forget();
    await this.#database.close();
    await rm(this.#root, { recursive: true, force: true });
  }

  async run(statement: string): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const prepared = await this.#prepare(statement);
      try {
        await prepared.execute([], { rows: { format: 'json' } });
        return;
      } catch (failure) {
        // Sessions also retry statements that conflict with another commit.
        const isMet = failure instanceof DatabaseError && failure.code === 'Replan';
        if (!isMet || attempt === MAX_ATTEMPTS) {
          throw failure;
        }
      } finally {
        prepared.close();
      }
    }
  }

  async rows(query: string): Promise<readonly (readonly unknown[])[]> {
    let prepared = this.#queries.get(query);
    if (prepared === undefined) {
      prepared = await this.#prepare(query);
      this.#queries.set(query, prepared);
    }
    const reply = await prepared.execute([], { rows: { format: 'json' } });
    let text = reply.chunk?.bytes.toString() ?? '';
    for (;;) {
      const chunk = await reply.stream?.next();
      if (chunk == null) {
        return JSON.parse(`[${text}]`) as readonly (readonly unknown[])[];
      }
      text += chunk.bytes.toString();
    }
  }

  async #prepare(statement: string): Promise<Statement> {
    const tree = Buffer.from(JSON.stringify(parse(statement)));
    return await this.#database.prepare(tree, { user: 'admin' });
  }

  /** Drops the prepared queries on an object that was dropped. */
  forget(name: string): void {
    for (const [query, prepared] of this.#queries) {
      if (query.includes(name)) {
        prepared.close();
        this.#queries.delete(query);
      }
    }
  }

  #forget(): void {
    this.forget('');
  }
}

/** Opens the database without syncs, because durability is covered by the crash simulation. */
function open(root: string): Promise<Database> {
  return openDatabase({ root, commitMode: 'nosync' });
}

/**
 * Returns an in-memory folder if there is enough space, because checkpoints would have to wait for
 * a disk.
 */
async function quickFolder(): Promise<string> {
  const { bavail, bsize } = await statfs(MEMORY).catch(() => ({ bavail: 0, bsize: 0 }));
  return bavail * bsize >= MIN_MEMORY_BYTES ? MEMORY : tmpdir();
}
