/**
 * Refreshes of materialized and live views, which read with the view owner's rights. The engine
 * refreshes views on its own and cannot check rights. A view whose owner lacks a right is therefore
 * recorded, and the engine skips it until the record is removed.
 */
import { asDatabaseError, type Database, type Owner } from '../session/index.js';
import { parse } from '../sql/index.js';
import { authorise } from './authorise.js';
import { quoteName } from '../sql/printer/print-expression.js';
import { readRows } from './schema.js';
import { EVERYTHING, type Rights } from './store.js';

const RECORD_KIND = 'refresh_refusal';

/**
 * The statement that starts a refresh of each kind of view. Preparing it reports the tables and
 * columns that the view's query reads.
 */
const KINDS = [
  { list: 'materialized_views()', refresh: (name: string) => `REFRESH MATERIALIZED VIEW ${name}` },
  { list: 'live_views()', refresh: (name: string) => `ALTER LIVE VIEW ${name} RESUME WAL` },
];

/** A view's directory name ends with its table ID. */
const TABLE_ID = /~(\d+)$/;

type RightsOfOwner = (owner: Owner) => Rights;

/**
 * Records the views whose owner lacks a right. If access control is off (`null`), no view is
 * recorded.
 */
export async function recordRefusals(
  database: Database,
  rightsOfOwner: RightsOfOwner | null,
): Promise<void> {
  const known = await database.loadRecords(RECORD_KIND);
  const due =
    rightsOfOwner === null ? new Map<string, string>() : await refusals(database, rightsOfOwner);
  const changes = new Map<string, Buffer | null>();
  for (const [id, reason] of due) {
    if (known.get(id)?.toString('utf8') !== reason) {
      changes.set(id, Buffer.from(reason));
    }
  }
  for (const id of known.keys()) {
    if (!due.has(id)) {
      changes.set(id, null);
    }
  }
  if (changes.size > 0) {
    await database.commitRecords(RECORD_KIND, changes);
  }
}

/** Returns why views may not be refreshed, keyed by table id. */
async function refusals(
  database: Database,
  rightsOfOwner: RightsOfOwner,
): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const { list, refresh } of KINDS) {
    const views = await readRows(database, `SELECT view_name, view_table_dir_name FROM ${list}`);
    for (const [name, directory] of views) {
      const id = TABLE_ID.exec(String(directory))?.[1];
      const reason = await refusal(database, refresh(quoteName(String(name))), rightsOfOwner);
      if (id !== undefined && reason !== null) {
        found.set(id, reason);
      }
    }
  }
  return found;
}

/**
 * Returns why the owner may not run a refresh. Returns `null` if the owner may, or if the view
 * cannot be refreshed at all.
 */
async function refusal(
  database: Database,
  text: string,
  rightsOfOwner: RightsOfOwner,
): Promise<string | null> {
  const tree = Buffer.from(JSON.stringify(parse(text)));
  try {
    const statement = await database.prepare(tree, { user: 'access', text });
    const reads = statement.description.accesses.filter(({ view }) => view !== undefined);
    statement.close();
    authorise(EVERYTHING, reads, rightsOfOwner);
    return null;
  } catch (error) {
    const { code, message } = asDatabaseError(error);
    return code === 'AccessDenied' ? `${message}: grant it to the owner of the view` : null;
  }
}
