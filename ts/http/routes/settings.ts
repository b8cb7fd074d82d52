/**
 * /settings: server properties that clients read before they write, and the console's preferences.
 * Preferences have a version. A client that saves them names the version it read, so that
 * concurrent edits are not lost.
 */
import { KEYS } from '../../config/index.js';
import type { Database } from '../../session/index.js';
import { storesNotebooks } from './notebooks.js';
import { principalOf } from '../response/statement-answer.js';
import {
  answer,
  DISCOVERY_WAIT_MS,
  type HttpContext,
  type HttpServices,
  JSON_TYPE,
  type Route,
} from '../route.js';

const RECORD_KIND = 'preferences';
const RECORD_KEY = 'console';
const MAX_PREFERENCES_BYTES = 64 * 1024;
const ABOUT = 'settings that clients read before writing, and console preferences';

interface Stored {
  readonly version: number;
  readonly preferences: Readonly<Record<string, unknown>>;
}

const NOTHING_STORED: Stored = { version: 0, preferences: {} };

export function settingsRoutes(services: HttpServices, path: string): Route[] {
  const { database } = services.sessions;
  const fixed = publicConfig(services);
  const saver = new PreferenceSaver(database);
  const readOnly = isReadOnly(services);
  return [
    {
      path,
      methods: ['GET'],
      access: 'open',
      errors: 'json',
      about: ABOUT,
      handle: async (context) => {
        const { version, preferences } = await load(database);
        const config = { ...fixed, ...wireConfig(services), ...(await signOnConfig(services)) };
        const body = { config, 'preferences.version': version, preferences };
        answer(context, 200, JSON_TYPE, JSON.stringify(body));
      },
    },
    {
      path,
      methods: ['POST', 'PUT'],
      access: 'data',
      errors: 'json',
      permission: 'SETTINGS',
      body: { kind: 'bytes', limitBytes: MAX_PREFERENCES_BYTES },
      about: ABOUT,
      handle: async (context) => {
        if (readOnly) {
          const error = 'preferences are read-only on this server';
          answer(context, 403, JSON_TYPE, JSON.stringify({ error }));
          return;
        }
        if (await saver.handle(context)) {
          const text = `preferences of the console: ${context.method}`;
          const command = 'SETTINGS';
          services.sessions.guard?.ran(principalOf(context, readOnly), text, { command });
        }
      },
    },
  ];
}

function publicConfig(services: HttpServices): Record<string, unknown> {
  const { authenticator, config, version } = services;
  const servesLines = config.get(KEYS.lineHttpEnabled);
  const transports = [
    ...(servesLines ? ['http'] : []),
    ...(services.servesLinesOverTcp ? ['tcp'] : []),
  ];
  return {
    'release.type': 'OSS',
    'release.version': version,
    'http.settings.readonly': isReadOnly(services),
    'accepting.writes': [
      ...(config.get(KEYS.httpReadOnly) ? [] : ['http']),
      ...(config.get(KEYS.pgReadOnly) ? [] : ['pgwire']),
    ],
    'line.proto.support.versions': servesLines ? [1, 2, 3] : [],
    'ilp.proto.transports': transports,
    'posthog.enabled': false,
    'posthog.api.key': null,
    'cairo.max.file.name.length': 127,
    ...(authenticator.required ? { 'acl.enabled': true } : {}),
    ...(storesNotebooks(services) ? { 'notebooks.kept': true } : {}),
    ...(config.get(KEYS.insecurePublic) ? { 'security.insecure.public': true } : {}),
  };
}

/** Returns the port for PostgreSQL clients, so that the console can show how to connect them. */
function wireConfig({ wire }: HttpServices): Record<string, unknown> {
  const endpoint = wire?.() ?? null;
  return endpoint === null
    ? {}
    : { 'pg.port': endpoint.port, 'pg.tls.enabled': endpoint.isEncrypted };
}

/**
 * Sign-on settings for the console. They include the provider's endpoints, so the function waits
 * for these if necessary. The wait is bounded, because the provider may be down.
 */
async function signOnConfig({
  authenticator,
  config,
}: HttpServices): Promise<Record<string, unknown>> {
  const { signOn } = authenticator;
  const basic = { 'acl.basic.auth.realm.enabled': config.get(KEYS.oidcBasicRealm) };
  if (signOn === null) {
    return authenticator.required ? { ...basic, 'acl.oidc.enabled': false } : {};
  }
  const { settings } = signOn;
  const metadata = await signOn.metadata(DISCOVERY_WAIT_MS);
  return {
    ...basic,
    'acl.oidc.enabled': true,
    'acl.oidc.client.id': settings.clientId,
    'acl.oidc.redirect.uri': settings.redirectUri === '' ? null : settings.redirectUri,
    'acl.oidc.scope': settings.scope,
    'acl.oidc.pkce.required': settings.pkce,
    'acl.oidc.state.required': settings.stateRequired,
    'acl.oidc.groups.encoded.in.token': settings.groupsInToken,
    'acl.oidc.sub.claim': settings.subClaim,
    'acl.oidc.pg.token.as.password.enabled': settings.tokenAsPassword,
    ...(metadata === null
      ? {}
      : {
          'acl.oidc.issuer': metadata.issuer,
          'acl.oidc.authorization.endpoint': metadata.authorization,
          'acl.oidc.token.endpoint': metadata.token,
          'acl.oidc.end.session.endpoint': metadata.endSession,
          'acl.oidc.pkce.supported': metadata.understandsS256,
        }),
  };
}

function isReadOnly({ config }: HttpServices): boolean {
  return config.get(KEYS.httpReadOnly) || config.get(KEYS.httpSettingsReadOnly);
}

/** PUT replaces, POST merges; both increment the version. Saves are sequential. */
class PreferenceSaver {
  readonly #database: Database;
  #last: Promise<unknown> = Promise.resolve();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Handles a request; returns whether anything was saved. */
  async handle(context: HttpContext): Promise<boolean> {
    const text = context.state.body.toString('utf8');
    const queued = this.#last.then(() => this.#save(context, text));
    this.#last = queued.catch(() => undefined);
    return await queued;
  }

  async #save(context: HttpContext, text: string): Promise<boolean> {
    const sent = parseObject(text);
    if (sent === null) {
      refuse(context, 'Malformed preferences message [expected a JSON object]');
      return false;
    }
    const version = context.state.parameters.get('version') ?? '';
    if (!/^\d{1,15}$/.test(version)) {
      const error = `invalid version '${version}': expected the last version read, a whole number`;
      answer(context, 400, JSON_TYPE, JSON.stringify({ error }));
      return false;
    }
    const expected = Number(version);
    const stored = await load(this.#database);
    if (expected !== stored.version) {
      const versions = `[currentVersion=${stored.version}, expectedVersion=${expected}]`;
      refuse(context, `preferences view is out of date ${versions}`);
      return false;
    }
    const preferences = context.method === 'PUT' ? sent : { ...stored.preferences, ...sent };
    const next: Stored = { version: stored.version + 1, preferences };
    const record = new Map([[RECORD_KEY, Buffer.from(JSON.stringify(next))]]);
    await this.#database.commitRecords(RECORD_KIND, record);
    answer(context, 200, JSON_TYPE, '{"status":"OK"}\r\n');
    return true;
  }
}

function refuse(context: HttpContext, error: string): void {
  answer(context, 409, JSON_TYPE, JSON.stringify({ error }));
}

async function load(database: Database): Promise<Stored> {
  const record = (await database.loadRecords(RECORD_KIND)).get(RECORD_KEY);
  return record === undefined ? NOTHING_STORED : (JSON.parse(record.toString()) as Stored);
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? Object.fromEntries(Object.entries(value)) : null;
  } catch {
    return null;
  }
}
