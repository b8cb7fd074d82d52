/** Certificates for tests, made with openssl. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface CertificateOptions {
  /** Arguments of `openssl req` that choose the key. */
  readonly key?: readonly string[];
  readonly digest?: string;
  /** Whether the certificate is only for a server and cannot sign others. */
  readonly isServer?: boolean;
}

const ELLIPTIC = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];

/** A temporary folder; call `remove` on it at the end. */
export class CertificateFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'tidemark-tls-'));

  file(name: string): string {
    return join(this.path, name);
  }

  /** Writes `NAME.crt` and `NAME.key`, self-signed for localhost. */
  make(name: string, options: CertificateOptions = {}): void {
    const { key = ELLIPTIC, digest = 'sha256', isServer = false } = options;
    const out = ['-keyout', this.file(`${name}.key`), '-out', this.file(`${name}.crt`)];
    const names = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
    const kind = isServer ? ['-addext', 'basicConstraints=critical,CA:FALSE'] : [];
    const created = ['req', '-x509', '-nodes', '-days', '2', `-${digest}`];
    const args = [...created, ...key, ...out, ...names, ...kind];
    execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  }

  /** `--set` values that encrypt every endpoint with a certificate and key. */
  settings(name: string): string[] {
    return [
      'tls.enabled=true',
      `tls.cert.path=${this.file(`${name}.crt`)}`,
      `tls.private.key.path=${this.file(`${name}.key`)}`,
    ];
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
