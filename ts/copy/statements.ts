/**
 * COPY as a statement. It is parsed and checked when it is prepared, and starts a job when it runs.
 * It returns the job's ID; COPY … CANCEL returns the job's outcome.
 */
import {
  type Access,
  type Actor,
  DatabaseError,
  type OwnAction,
  OwnStatement,
  type ServerStatements,
  type Principal,
  principalKey,
  type Statement,
  type StatementContext,
  WriteAuthorizer,
} from '../session/index.js';
import { type CopyStatement, type Name, parse, type Tree } from '../sql/index.js';
import { type ExportServices, type ExportSource, ExportWork } from './export-work.js';
import { type ImportServices, importTarget, ImportWork } from './import-work.js';
import type { Jobs, Work } from './jobs.js';
import { exportSettings, importSettings } from './options.js';
import { isPartitionUnit, type PartitionUnit } from './partitions.js';
import { segmentsBelow } from './paths.js';
import { quoteName, type Sql } from './sql.js';

interface CopyServices {
  readonly sql: Sql;
  readonly jobs: Jobs;
  readonly imports: ImportServices;
  readonly exports: ExportServices;
}

const JOB_ID = /^[\da-f]{1,16}$/i;

export class CopyStatements implements ServerStatements {
  readonly #services: CopyServices;

  constructor(services: CopyServices) {
    this.#services = services;
  }

  async prepare(tree: Tree, context: StatementContext, actor: Actor): Promise<Statement> {
    const copy = copyOf(tree);
    if (copy === null) {
      throw new DatabaseError({ code: 'Internal', message: 'not a COPY statement' });
    }
    if (context.readOnly === true) {
      const message = 'Write permission denied: the session is read-only';
      throw new DatabaseError({ code: 'ReadOnly', message });
    }
    const action = await this.#action(copy, tree, context, actor);
    const { user, text = '' } = context;
    return await OwnStatement.of('COPY', action, (answer) =>
      this.#services.sql.prepare(answer, { user, text }),
    );
  }

  async #action(
    copy: CopyStatement,
    tree: Tree,
    context: StatementContext,
    { principal }: Actor,
  ): Promise<OwnAction> {
    switch (copy.copy) {
      case 'Import':
        return await this.#import(copy, context, principal);
      case 'Export':
        return await this.#export(copy, tree, context, principal);
      case 'Cancel':
        return this.#cancel(copy.id, principalKey(principal));
    }
  }

  #started(
    accesses: readonly Access[],
    owner: Principal,
    work: Work,
    notice: string | null,
  ): OwnAction {
    const run = async (): Promise<readonly string[]> => [
      await this.#services.jobs.start(principalKey(owner), work),
    ];
    return { accesses, columns: ['id'], run, ...(notice === null ? {} : { notice }) };
  }

  async #import(
    copy: Extract<CopyStatement, { copy: 'Import' }>,
    { user, text = '' }: StatementContext,
    principal: Principal,
  ): Promise<OwnAction> {
    const { sql, imports } = this.#services;
    const settings = importSettings(copy.options);
    const file = segmentsBelow(imports.root, copy.file);
    const existing = await sql.database.tableMetadata(copy.table.text);
    const target = importTarget(copy.table.text, existing);
    const accesses: readonly Access[] = [
      ...new WriteAuthorizer(imports.guard, { principal }).accesses(target),
      { table: '', columns: [], permission: 'READ FILES' },
    ];
    // Rights are checked before the reply can reveal anything about the table.
    imports.guard?.authorise(principal, accesses);
    if (settings.needsTimestamp !== null && (settings.timestamp ?? existing?.timestamp) == null) {
      throw new DatabaseError({
        code: 'InvalidValue',
        message:
          'invalid option used for import without a designated timestamp (format or partition ' +
          'by), add TIMESTAMP with a column',
        ...settings.needsTimestamp.span,
      });
    }
    const work = new ImportWork(imports, {
      user,
      principal,
      text,
      table: target.table,
      file,
      settings,
    });
    return this.#started(accesses, principal, work, null);
  }

  async #export(
    copy: Extract<CopyStatement, { copy: 'Export' }>,
    tree: Tree,
    context: StatementContext,
    principal: Principal,
  ): Promise<OwnAction> {
    const { user, text = '', lists } = context;
    const { exports } = this.#services;
    const settings = exportSettings(copy.options, copy.path);
    const path = segmentsBelow(exports.root, copy.path);
    const { accesses, source } = await this.#source(copy, tree, context);
    const requested =
      settings.partitionBy ?? (await this.#usualPartitions(copy.table, settings.format));
    const partitionBy = requested === 'NONE' ? null : requested;
    if (partitionBy !== null && source.timestamp === null) {
      throw new DatabaseError({
        code: 'InvalidValue',
        message: 'partitioning is possible only on tables with designated timestamps',
        ...settings.partitionName?.span,
      });
    }
    const writes = { table: '', columns: [], permission: 'WRITE FILES' };
    const work = new ExportWork(exports, {
      user,
      principal,
      accesses: [...accesses, writes],
      text,
      ...(lists === undefined ? {} : { lists }),
      source,
      path,
      settings,
      partitionBy,
    });
    return this.#started([...accesses, writes], principal, work, settings.notice);
  }

  /**
   * Returns the default partitioning: a table exported to Parquet is split by partition; anything
   * else goes to a single file.
   */
  async #usualPartitions(table: Name | null, format: string): Promise<PartitionUnit | 'NONE'> {
    if (table === null || format !== 'parquet') {
      return 'NONE';
    }
    const metadata = await this.#services.sql.database.tableMetadata(table.text);
    const unit = metadata?.partitionBy ?? 'NONE';
    return isPartitionUnit(unit) ? unit : 'NONE';
  }

  async #source(
    copy: Extract<CopyStatement, { copy: 'Export' }>,
    tree: Tree,
    context: StatementContext,
  ): Promise<{ readonly accesses: readonly Access[]; readonly source: ExportSource }> {
    const { table, query } = copy;
    const all = table === null ? null : `SELECT * FROM ${quoteName(table.text)}`;
    const source = all === null ? { ...tree, root: query ?? tree.root } : parse(all);
    const { text = '' } = context;
    const span = tree.spans[source.root];
    const prepared = await this.#services.sql.prepare(source, context).catch((error: unknown) => {
      throw table === null ? error : placed(error, table);
    });
    const { accesses, columns, timestamp, parameters } = prepared.description;
    prepared.close();
    if (parameters.length > 0) {
      const message = 'COPY does not support parameters; use literal values';
      throw new DatabaseError({ code: 'NotSupported', message, ...span });
    }
    return {
      accesses,
      source: {
        table: table?.text ?? null,
        tree: source,
        sql: all ?? text.slice(span?.start, span?.end),
        timestamp: columns[timestamp]?.name ?? null,
      },
    };
  }

  #cancel(id: Name, user: string): OwnAction {
    const { jobs } = this.#services;
    if (!JOB_ID.test(id.text)) {
      const message = `copy cancel ID format is invalid: '${id.text}'; use an id returned by COPY`;
      throw new DatabaseError({ code: 'InvalidValue', message, ...id.span });
    }
    const job = id.text.toLowerCase();
    const owner = jobs.ownerOf(job);
    const isOfOtherUser = owner !== null && owner !== user;
    return {
      accesses: isOfOtherUser ? [{ table: '', columns: [], permission: 'CANCEL ANY COPY' }] : [],
      columns: ['id', 'status'],
      run: async () => [id.text, (await jobs.cancel(job)) ?? 'unknown'],
    };
  }
}

/** Moves an engine error to the position of a name in the statement. */
function placed(error: unknown, { span }: Name): unknown {
  if (!(error instanceof DatabaseError)) {
    return error;
  }
  const { code, message, hint } = error;
  return new DatabaseError({ code, message, hint, ...span }, { cause: error });
}

function copyOf({ nodes, root }: Partial<Tree>): CopyStatement | null {
  const node = root === undefined ? undefined : nodes?.[root];
  return node?.kind === 'Copy' ? node.copy : null;
}
