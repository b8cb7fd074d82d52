/** Statements that jobs give the engine themselves. */
import {
  type Access,
  asDatabaseError,
  type Database,
  DatabaseError,
  type ExecuteReply,
  type Looks,
  looksWithin,
  type ParameterValues,
  type RowFormat,
  type Statement,
  type StatementContext,
  type Summary,
} from '../session/index.js';
import { parse, type Tree } from '../sql/index.js';

const JSON_ROWS = { format: 'json' } as const;

/** Who runs a statement, under which text it is listed, and what they see; absent: everything. */
type StatementSetting = Pick<
  StatementContext,
  'user' | 'identity' | 'text' | 'visibility' | 'lists' | 'allows'
>;

export interface JobContext extends StatementSetting {
  /** Throws where a statement, as it is bound now, takes what is not granted. */
  readonly authorise?: (accesses: readonly Access[]) => void;
  readonly signal: AbortSignal;
}

const BACKGROUND: JobContext = {
  user: 'copy',
  text: 'COPY log',
  signal: new AbortController().signal,
};

export class Sql {
  readonly database: Database;
  readonly #looks: Looks | undefined;

  /** `looks`: absent where no texts in files are read. */
  constructor(database: Database, looks?: Looks) {
    this.database = database;
    this.#looks = looks;
  }

  async prepare(
    tree: Tree | string,
    setting: StatementSetting & Partial<Pick<JobContext, 'signal'>>,
  ): Promise<Statement> {
    const node = typeof tree === 'string' ? parse(tree) : tree;
    const limits = { timeoutMs: 0, elapsedMs: 0, cancelled: setting.signal };
    const context = { ...settingOf(setting), ...looksWithin(this.#looks, limits) };
    return await this.database.prepare(Buffer.from(JSON.stringify(node)), context);
  }

  /** Runs a statement without rows. */
  async run(
    sql: string,
    parameters: ParameterValues = [],
    context: JobContext = BACKGROUND,
  ): Promise<Summary> {
    return await this.execute(sql, parameters, JSON_ROWS, context, ({ summary }) => {
      if (summary === null) {
        throw new DatabaseError({ code: 'Internal', message: 'a statement without an end' });
      }
      return Promise.resolve(summary);
    });
  }

  /** All rows of a query; for few and short ones. */
  async rows(sql: string, context: JobContext = BACKGROUND): Promise<readonly unknown[][]> {
    return await this.execute(sql, [], JSON_ROWS, context, async ({ chunk, stream }) => {
      const parts = [chunk?.bytes ?? Buffer.alloc(0)];
      for (let next = await stream?.next(); next != null; next = await stream?.next()) {
        parts.push(next.bytes);
      }
      return JSON.parse(`[${Buffer.concat(parts).toString('utf8')}]`) as unknown[][];
    });
  }

  /**
   * Runs a statement and hands its reply to `take`. A statement whose tables changed after it was
   * bound is bound once more; what it did until then is nothing.
   */
  async execute<T>(
    tree: Tree | string,
    parameters: ParameterValues,
    rows: RowFormat,
    context: JobContext,
    take: (reply: ExecuteReply) => Promise<T>,
  ): Promise<T> {
    return await this.stoppable(context, async (queryId) => {
      let statement = await this.prepare(tree, context);
      try {
        context.authorise?.(statement.description.accesses);
        context.signal.throwIfAborted();
        const reply = await statement
          .execute(parameters, { rows, queryId })
          .catch(async (error: unknown) => {
            if (asDatabaseError(error).code !== 'Replan') {
              throw error;
            }
            statement.close();
            statement = await this.prepare(tree, context);
            context.authorise?.(statement.description.accesses);
            context.signal.throwIfAborted();
            return await statement.execute(parameters, { rows, queryId });
          });
        return await taken(reply, take);
      } finally {
        statement.close();
      }
    });
  }

  /** Does `work`, and stops the query that it runs when the job is cancelled. */
  private async stoppable<T>(
    { signal }: JobContext,
    work: (queryId: bigint) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    const queryId = this.database.newQueryId();
    const stop = (): void => {
      this.database.cancelQuery(queryId);
    };
    signal.addEventListener('abort', stop, { once: true });
    try {
      return await work(queryId);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }
}

/** What is not read to its end is stopped. */
async function taken<T>(
  reply: ExecuteReply,
  take: (reply: ExecuteReply) => Promise<T>,
): Promise<T> {
  try {
    return await take(reply);
  } catch (error) {
    reply.stream?.cancel();
    throw error;
  }
}

/** A name in double quotes. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A text in single quotes. */
export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Without what a job has beside it. */
function settingOf({
  user,
  identity,
  text,
  visibility,
  lists,
  allows,
}: StatementSetting): StatementSetting {
  return {
    user,
    ...(identity === undefined ? {} : { identity }),
    ...(text === undefined ? {} : { text }),
    ...(visibility === undefined ? {} : { visibility }),
    ...(lists === undefined ? {} : { lists }),
    ...(allows === undefined ? {} : { allows }),
  };
}
