/**
 * Calls to the provider: encrypted with a trusted certificate, limited in duration and size, and
 * never redirected.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

import test from 'ava';

import { HttpTransport, isLinkLocal } from '../../ts/auth/oidc/transport.js';
import { CertificateFolder } from '../tls/certificates.js';
import { settingsOf } from './fakes.js';
import { TestProvider } from './provider.js';

const certificates = new CertificateFolder();
let encrypted: TestProvider;
test.before(async () => {
  certificates.make('id');
  encrypted = await TestProvider.start({
    tls: {
      cert: readFileSync(certificates.file('id.crt')),
      key: readFileSync(certificates.file('id.key')),
    },
  });
});
test.after.always(async () => {
  await encrypted.close();
  certificates.remove();
});

test('an untrusted certificate is refused', async (t) => {
  const transport = new HttpTransport(settingsOf());
  await t.throwsAsync(transport.call({ url: encrypted.discoveryUrl }), {
    name: 'ProviderUnavailable',
    message: /self-signed certificate/,
  });
});

test('a configured CA is trusted', async (t) => {
  const keystore = `acl.oidc.tls.keystore.path=${certificates.file('id.crt')}`;
  const transport = new HttpTransport(settingsOf(keystore));
  const { status, body } = await transport.call({ url: encrypted.discoveryUrl });
  t.is(status, 200);
  t.true(body.includes(encrypted.issuer));
});

test('any certificate is accepted if validation is disabled', async (t) => {
  const transport = new HttpTransport(settingsOf('acl.oidc.tls.validation.enabled=false'));
  t.is((await transport.call({ url: encrypted.discoveryUrl })).status, 200);
});

test('redirects are not followed, and large responses are not read', async (t) => {
  let requests = 0;
  const server = createServer((request, response) => {
    requests += 1;
    if (request.url === '/large') {
      response.end(Buffer.alloc(3 << 20, 0x20));
    } else if (request.url === '/endless') {
      response.write('{');
    } else {
      response.writeHead(302, { Location: '/large' }).end();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const transport = new HttpTransport(settingsOf('acl.oidc.http.timeout=3s'));
  t.is((await transport.call({ url: `${url}/` })).status, 302);
  t.is(requests, 1);
  await t.throwsAsync(transport.call({ url: `${url}/large` }), {
    message: /too large \[limit=1048576 bytes\]/,
  });
  await t.throwsAsync(transport.call({ url: `${url}/endless` }), { message: /no response within/ });
});

test('a failed connection is reported as unavailable', async (t) => {
  const transport = new HttpTransport(settingsOf());
  await t.throwsAsync(transport.call({ url: 'http://127.0.0.1:1/' }), {
    name: 'ProviderUnavailable',
    message: /ECONNREFUSED/,
  });
});

test('link-local addresses are recognized', (t) => {
  for (const address of ['169.254.169.254', '::ffff:169.254.1.1', 'fe80::1', '[FE90::2]']) {
    t.true(isLinkLocal(address), address);
  }
  for (const address of ['169.253.1.1', '10.0.0.1', '::1', 'fd00::1', 'id.example']) {
    t.false(isLinkLocal(address), address);
  }
});
