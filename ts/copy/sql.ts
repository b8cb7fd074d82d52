/** Runs SQL statements for jobs. */
import {
  type Access,
  asDatabaseError,
  type Database,
  DatabaseError,
  type ExecuteReply,
  type TextShapeDetector,
  textShapeContext,
  type ParameterValues,
  type RowFormat,
  type Statement,
  type StatementContext,
  type Summary,
} from '../session/index.js';
import { parse, type Tree } from '../sql/index.js';

const JSON_ROWS = { format: 'json' } as const;

/** A statement's user, SQL text and visibility; an absent value means no restriction. */
type StatementSetting = Pick<
  StatementContext,
  'user' | 'identity' | 'text' | 'visibility' | 'lists' | 'allows'
>;

export interface JobContext extends StatementSetting {
  /** Throws if the statement, as currently bound, requires a permission that the user lacks. */
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
  readonly #detectTextShape: TextShapeDetector | undefined;

  /** Without `detectTextShape`, statements cannot read text files. */
  constructor(database: Database, detectTextShape?: TextShapeDetector) {
    this.database = database;
    this.#detectTextShape = detectTextShape;
  }

  async prepare(
    tree: Tree | string,
    setting: StatementSetting & Partial<Pick<JobContext, 'signal'>>,
  ): Promise<Statement> {
    const node = typeof tree === 'string' ? parse(tree) : tree;
    const limits = { timeoutMs: 0, elapsedMs: 0, cancelled: setting.signal };
    const context = { ...settingOf(setting), ...textShapeContext(this.#detectTextShape, limits) };
    return await this.database.prepare(Buffer.from(JSON.stringify(node)), context);
  }

  /** Runs a statement that returns no rows. */
  async run(
    sql: string,
    parameters: ParameterValues = [],
    context: JobContext = BACKGROUND,
  ): Promise<Summary> {
    return await this.execute(sql, parameters, JSON_ROWS, context, ({ summary }) => {
      if (summary === null) {
        throw new DatabaseError({ code: 'Internal', message: 'the statement returned no summary' });
      }
      return Promise.resolve(summary);
    });
  }

  /** Returns all rows of a query; for small results only. */
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
   * Runs a statement and passes its reply to `consume`. If a table changed after binding, the
   * statement had no effect and is bound again once.
   */
  async execute<T>(
    tree: Tree | string,
    parameters: ParameterValues,
    rows: RowFormat,
    context: JobContext,
    consume: (reply: ExecuteReply) => Promise<T>,
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
        return await consumed(reply, consume);
      } finally {
        statement.close();
      }
    });
  }

  /** Runs `work`, and cancels its query if the job is cancelled. */
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

/** Consumes a reply; cancels it if it is not read to the end. */
async function consumed<T>(
  reply: ExecuteReply,
  consume: (reply: ExecuteReply) => Promise<T>,
): Promise<T> {
  try {
    return await consume(reply);
  } catch (error) {
    reply.stream?.cancel();
    throw error;
  }
}

/** Quotes an identifier. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Quotes a string literal. */
export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Returns the settings without the fields that only jobs have. */
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
