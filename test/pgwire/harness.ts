/** A listener over the fake engine. */
import test from 'ava';

import { SILENT } from '../silent.js';
import { listenPgWire, type PgWireOptions } from '../../ts/pgwire/server.js';
import { type DurationObserver, SessionHost } from '../../ts/session/index.js';
import type { CredentialStore } from '../../ts/tls/index.js';
import { fakeOrSession } from '../fake-statement.js';
import { type FakeEngine, fakeEngine } from './fake-engine.js';

/** Connections left open by a failed test would keep its process alive. */
const opened = new Set<Harness['server']>();
test.after.always(async () => {
  await Promise.allSettled([...opened].map((server) => server.close()));
});

interface Harness {
  readonly engine: FakeEngine;
  readonly server: Awaited<ReturnType<typeof listenPgWire>>;
  readonly port: number;
}

export async function start(
  options: Partial<PgWireOptions> = {},
  credentials: CredentialStore | null = null,
  pgwire: DurationObserver = { observe: () => undefined },
): Promise<Harness> {
  const engine = fakeEngine();
  const sessions = new SessionHost({ database: engine, parse: fakeOrSession });
  const server = await listenPgWire(
    {
      host: null,
      port: 0,
      accounts: [
        { user: 'admin', password: 'quest', readOnly: false },
        { user: 'reader', password: 'pässword', readOnly: true },
      ],
      method: 'cleartext',
      readOnly: false,
      connectionsMax: 16,
      statementsMax: 10,
      messageBytesMax: 1_048_576,
      idleMs: 60_000,
      requireEncryption: false,
      ...options,
    },
    { sessions, logger: SILENT, statements: { pgwire } },
    credentials,
  );
  opened.add(server);
  return { engine, server, port: server.port };
}
