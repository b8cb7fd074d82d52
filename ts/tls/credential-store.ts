/**
 * A certificate with its key, and listeners that are notified when it is replaced. An operator
 * replaces the two files one after the other. Until the new files match, the previous pair remains
 * in use.
 */
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { createSecureContext, type SecureContext, type SecureVersion } from 'node:tls';

import type { CertificateFiles } from './certificate-files.js';
import { endPointBinding } from './end-point-binding.js';

const OLDEST_VERSION: SecureVersion = 'TLSv1.2';
/**
 * Polling interval. Unlike events, polling detects changed symbolic links and renamed directories.
 */
const WATCH_MS = 2_000;

/** Reports unusable files; the message is one line for the operator. */
export class TlsError extends Error {
  override readonly name = 'TlsError';
}

export interface Credentials {
  /** Options for `https.createServer` and `setSecureContext`. */
  readonly options: {
    readonly cert: Buffer;
    readonly key: Buffer;
    readonly minVersion: SecureVersion;
  };
  readonly context: SecureContext;
  /** The data that `tls-server-end-point` binds a login to; `null` if no hash is defined. */
  readonly endPoint: Buffer | null;
}

type Listener = (credentials: Credentials) => void;

export class CredentialStore {
  #files: CertificateFiles;
  #current: Credentials;
  readonly #listeners: Listener[] = [];
  #watch: (() => void) | null = null;

  /** Reads the files; throws `TlsError` if they are unusable. */
  constructor(files: CertificateFiles) {
    this.#files = files;
    this.#current = read(files);
  }

  get current(): Credentials {
    return this.#current;
  }

  /** Calls `listener` whenever the pair is replaced. */
  onChange(listener: Listener): void {
    this.#listeners.push(listener);
  }

  /**
   * Reads the files again. Returns true if the certificate or key changed. If the files are
   * unusable, throws `TlsError` and keeps the previous pair.
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

  /** Calls `changed` when a file changes, until `close`. */
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
    // Each store has its own listener, because stores may share files and each must stop only its
    // own watch.
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
