/**
 * Binds a statement's SQL text for one user, one visibility of the catalog and one transaction
 * block. A query that was already bound for the same user is shared; any other statement is bound
 * again.
 */
import type { Access, Owner, Statement, StatementContext, Transaction } from '../engine/types.js';
import type { Tree } from '../sql/index.js';
import { asDatabaseError } from './error.js';
import { allowing, type Listed, type Principal, principalKey } from './guard.js';
import { textShapeContext } from './text-shape.js';
import { type Operated, operated, typesWithResults } from './operations.js';
import { withoutSecrets } from './secrets.js';
import type { StatementHost, StatementSession } from './statement-host.js';
import { type ParsedStatement, StatementCache } from './statement-cache.js';
import type { TimeBounds } from './time-bounds.js';

/** Parameter types that the client declared; `null` where unspecified. */
export type ParameterTypes = readonly (string | null)[];

/** Conditions that abort preparing a statement. */
export interface PrepareOptions extends TimeBounds {
  readonly signal?: AbortSignal;
}

/** The context for which a statement is bound. */
interface Terms {
  /** Cache key for sharing the binding; `null` if it cannot be shared. */
  readonly key: string | null;
  /** The principal whose permissions apply, and the version of its visibility. */
  readonly principal: Principal;
  readonly visibilityVersion: number;
  /** The transaction in which the statement was bound. */
  readonly transaction: Transaction | null;
  /**
   * Whether the result depends on data other than tables: users, permissions or sequence values.
   */
  readonly isListing: boolean;
  /** The statement's accesses to the server itself rather than to tables. */
  readonly serverAccesses: readonly Access[];
  /** Operations that the server performs at every execution; `null` if there are none. */
  readonly operated: Omit<Operated, 'tree'> | null;
}

export interface Binding {
  readonly statement: Statement;
  /** Whether other sessions may also run `statement`. */
  readonly isShared: boolean;
  readonly terms: Terms;
}

/** The statement to bind, and its context. */
export interface BindingRequest {
  readonly host: StatementHost;
  readonly session: StatementSession;
  readonly read: ParsedStatement;
  readonly types: ParameterTypes | undefined;
}

/**
 * Returns a query that was already bound for the same SQL text and user; `null` if there is none.
 */
export function cachedBinding(request: BindingRequest): Binding | null {
  try {
    const { guard, statements } = request.host;
    const terms = termsOf(request);
    const statement = terms.transaction === null ? statements.query(terms.key) : undefined;
    if (statement === undefined) {
      return null;
    }
    guard?.authorise(terms.principal, terms.serverAccesses);
    guard?.authorise(terms.principal, statement.description.accesses);
    return { statement, isShared: true, terms };
  } catch (error) {
    throw asDatabaseError(error);
  }
}

/** Binds SQL text; rejects with a `DatabaseError`. */
export async function newBinding(
  request: BindingRequest,
  { timeoutMs, elapsedMs, signal }: PrepareOptions,
): Promise<Binding> {
  const { database, guard, detectTextShape, statements } = request.host;
  const queryId = database.newQueryId();
  const cancel = (): void => void database.cancelQuery(queryId);
  signal?.addEventListener('abort', cancel);
  try {
    const terms = termsOf(request);
    const limits = { timeoutMs: request.host.timeoutMs(timeoutMs), elapsedMs };
    const bounds = {
      ...limits,
      queryId: `${queryId}`,
      ...textShapeContext(detectTextShape, { ...limits, cancelled: signal }),
    };
    const statement = await prepare(request, terms, bounds);
    // A statement is shared only if it depends on nothing but tables.
    const isShareable = terms.transaction === null && !terms.isListing && terms.operated === null;
    const isShared = isShareable && statements.share(terms.key, statement);
    guard?.authorise(terms.principal, statement.description.accesses);
    return { statement, isShared, terms };
  } catch (error) {
    throw asDatabaseError(error);
  } finally {
    signal?.removeEventListener('abort', cancel);
  }
}

/**
 * Whether a binding can no longer be used: it belongs to a different transaction, user or
 * visibility, or is valid for only one execution.
 */
export function isOutdated(
  { terms }: Binding,
  host: StatementHost,
  session: StatementSession,
): boolean {
  const { guard } = host;
  const { principal, transaction } = session;
  return (
    terms.transaction !== transaction ||
    terms.principal !== principal ||
    (guard !== undefined && terms.visibilityVersion !== guard.visibilityVersion(principal)) ||
    terms.isListing
  );
}

function termsOf({ host, session, read, types }: BindingRequest): Terms {
  const { principal, transaction } = session;
  const visibilityVersion = host.guard?.visibilityVersion(principal) ?? 0;
  // The name is included because an identity may have a different name at its next login.
  const who = `${principalKey(principal)} ${principal.name}`;
  const text = boundText(read);
  return {
    key: StatementCache.key(who, principal.readOnly, types, text, visibilityVersion),
    principal,
    visibilityVersion,
    transaction,
    isListing: read.listing !== null || read.readsSequenceValues,
    serverAccesses: read.accesses,
    operated: read.operated,
  };
}

/** The SQL text to bind. */
function boundText({ text, lifted }: ParsedStatement): string {
  return lifted?.text ?? text;
}

async function prepare(
  request: BindingRequest,
  { principal, transaction }: Terms,
  bounds: Pick<StatementContext, 'timeoutMs' | 'elapsedMs' | 'queryId' | 'detectTextShape'>,
): Promise<Statement> {
  const { host, session, read } = request;
  const { database, guard, server } = host;
  guard?.authorise(principal, read.accesses);
  const listed =
    read.listing === null || guard === undefined
      ? null
      : await guard.lists(principal, read.listing, read.text);
  const owner =
    read.view === null || guard === undefined ? null : guard.viewOwner(principal, read.view);
  const context = { ...contextOf(request, principal, listed, owner), ...bounds };
  const asked = listed?.tree ?? null;
  const bound =
    asked === null ? read.tree : Buffer.from(JSON.stringify(operated(asked as Tree).tree));
  const run = read.dispatch;
  const statements = run.runner === 'server' ? server[run.kind] : undefined;
  if (run.runner === 'server' && statements !== undefined) {
    return await statements.prepare(run.tree, context, session);
  }
  try {
    return transaction === null
      ? await database.prepare(bound, context)
      : await database.prepare(bound, context, transaction);
  } catch (error) {
    const tree = JSON.parse(read.tree.toString('utf8')) as object;
    guard?.authoriseUnbound(principal, tree);
    throw error;
  }
}

function contextOf(
  { host, session, read, types }: BindingRequest,
  principal: Principal,
  listed: Listed | null,
  owner: Owner | null,
): StatementContext {
  const { guard } = host;
  const parameterTypes = read.operated === null ? types : typesWithResults(read.operated, types);
  const visibility = guard?.visibility(principal);
  return {
    user: principal.name,
    identity: principalKey(principal),
    text: withoutSecrets(boundText(read)),
    readOnly: principal.readOnly,
    ...(owner === null ? {} : { owner }),
    ...(parameterTypes === undefined ? {} : { parameterTypes }),
    ...(visibility === undefined ? {} : { visibility }),
    ...(guard === undefined || visibility === undefined
      ? {}
      : { allows: allowing(guard, principal) }),
    ...(listed === null ? {} : { lists: listed.lists }),
    ...(read.readsSequenceValues ? { numbers: session.sequenceValues.list() } : {}),
  };
}
