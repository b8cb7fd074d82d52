/**
 * One certificate with its key, and listeners that learn when another takes its place. Files are
 * replaced one after the other: as long as they do not fit together the pair before them stays.
 */
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { createSecureContext, type SecureContext, type SecureVersion } from 'node:tls';

import type { CertificateFiles } from './certificate-files.js';
import { endPointBinding } from './end-point-binding.js';

const OLDEST_VERSION: SecureVersion = 'TLSv1.2';
/** Symbolic links and renamed folders are seen by asking, not by events. */
const WATCH_MS = 2_000;

/** The files cannot be used; the message is one line for the operator. */
export class TlsError extends Error {
  override readonly name = 'TlsError';
}

export interface Credentials {
  /** As `https.createServer` and `setSecureContext` take them. */
  readonly options: {
    readonly cert: Buffer;
    readonly key: Buffer;
    readonly minVersion: SecureVersion;
  };
  readonly context: SecureContext;
  /** What `tls-server-end-point` binds a login to; `null` where the hash is not defined. */
  readonly endPoint: Buffer | null;
}

type Listener = (credentials: Credentials) => void;

export class CredentialStore {
  #files: CertificateFiles;
  #current: Credentials;
  readonly #listeners: Listener[] = [];
  #watch: (() => void) | null = null;

  /** Throws `TlsError`. */
  constructor(files: CertificateFiles) {
    this.#files = files;
    this.#current = read(files);
  }

  get current(): Credentials {
    return this.#current;
  }

  /** Calls `listener` with every pair that takes the place of another. */
  onChange(listener: Listener): void {
    this.#listeners.push(listener);
  }

  /**
   * Reads the files, which may be others now; true when they hold another pair. Throws `TlsError`
   * and keeps what it has.
   */
  reload(files: CertificateFiles = this.#files): boolean {
    const next = read(files);
    if (files !== this.#files && this.#watch !== null) {
      this.#setWatch(files, this.#watch);
    }
    this.#files = files;
    const { cert, key } = this.#current.options;
    if (next.options.cert.equals(cert) && next.options.key.equals(key)) {
      return false;
    }
    this.#current = next;
    for (const listener of this.#listeners) {
      listener(next);
    }
    return true;
  }

  /** Calls `changed` when one of the files has changed, until `close`. */
  watch(changed: () => void): void {
    this.#setWatch(this.#files, changed);
  }

  close(): void {
    if (this.#watch !== null) {
      unwatchFile(this.#files.certificate, this.#watch);
      unwatchFile(this.#files.key, this.#watch);
      this.#watch = null;
    }
  }

  #setWatch(files: CertificateFiles, changed: () => void): void {
    this.close();
    // A listener of its own: stores may share their files, and each ends only its own watch.
    this.#watch = (): void => {
      changed();
    };
    const options = { interval: WATCH_MS, persistent: false };
    watchFile(files.certificate, options, this.#watch);
    watchFile(files.key, options, this.#watch);
  }
}

function read(files: CertificateFiles): Credentials {
  const cert = readPem(files.certificate);
  const key = readPem(files.key);
  const options = { cert, key, minVersion: OLDEST_VERSION };
  try {
    return { options, context: createSecureContext(options), endPoint: endPointBinding(cert) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new TlsError(
      `cannot use the certificate '${files.certificate}' with the key '${files.key}': ${reason}`,
      { cause: error },
    );
  }
}

function readPem(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const reason = /^[A-Z]+: ([^,]+)/.exec(message)?.[1] ?? message;
    throw new TlsError(`cannot read '${path}': ${reason}`, { cause: error });
  }
}
