/** node-postgres connected to a test server, by default as the administrator. */
import pg from 'pg';

/** @param address `host:port` for the wire protocol */
export function pgClient(address: string, other: pg.ClientConfig = {}): pg.Client {
  const [host, port] = address.split(':');
  const admin = { user: 'admin', password: 'quest', database: 'qdb' };
  return new pg.Client({ host, port: Number(port), ...admin, ...other });
}

/** Connects a client for `work`. An error of the connection itself is ignored. */
export async function withPgClient<T>(
  address: string,
  work: (client: pg.Client) => Promise<T>,
  config: pg.ClientConfig = {},
): Promise<T> {
  const client = pgClient(address, config);
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
