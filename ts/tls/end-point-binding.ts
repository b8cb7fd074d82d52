/**
 * Channel binding `tls-server-end-point` (RFC 5929): the certificate's digest, computed with the
 * hash algorithm of its signature, or with SHA-256 instead of MD5 and SHA-1. Only later Node
 * releases report that algorithm, so it is read from the certificate.
 */
import { createHash, X509Certificate } from 'node:crypto';

/** Signature hashes, keyed by the bytes of the algorithm's object identifier. */
const HASHES: Readonly<Record<string, string>> = {
  '2a864886f70d010104': 'sha256', // RSA with MD5
  '2a864886f70d010105': 'sha256', // RSA with SHA-1
  '2a864886f70d01010b': 'sha256',
  '2a864886f70d01010c': 'sha384',
  '2a864886f70d01010d': 'sha512',
  '2a8648ce3d0401': 'sha256', // ECDSA with SHA-1
  '2a8648ce3d040302': 'sha256',
  '2a8648ce3d040303': 'sha384',
  '2a8648ce3d040304': 'sha512',
};

const SEQUENCE = 0x30;
const OBJECT_IDENTIFIER = 0x06;

/**
 * Returns `null` if the signature has no single hash (Ed25519, RSA-PSS). Throws if `pem` is
 * invalid.
 */
export function endPointBinding(pem: Buffer): Buffer | null {
  const { raw } = new X509Certificate(pem);
  const algorithm = signatureAlgorithm(raw);
  const hash = algorithm === null ? undefined : HASHES[algorithm];
  return hash === undefined ? null : createHash(hash).update(raw).digest();
}

/** Certificate ::= SEQUENCE { tbsCertificate, SEQUENCE { algorithm OBJECT IDENTIFIER, … }, … } */
function signatureAlgorithm(certificate: Buffer): string | null {
  const outer = readHeader(certificate, 0);
  const signed = readHeader(certificate, outer.start);
  const algorithm = readHeader(certificate, signed.end);
  const identifier = readHeader(certificate, algorithm.start);
  const isAsExpected =
    [outer, signed, algorithm].every(({ tag }) => tag === SEQUENCE) &&
    identifier.tag === OBJECT_IDENTIFIER;
  return isAsExpected
    ? certificate.subarray(identifier.start, identifier.end).toString('hex')
    : null;
}

/** Reads the tag and range of the DER value at `at`. */
function readHeader(bytes: Buffer, at: number): { tag: number; start: number; end: number } {
  const tag = bytes[at] ?? 0;
  const first = bytes[at + 1] ?? 0;
  if (first < 0x80) {
    return { tag, start: at + 2, end: at + 2 + first };
  }
  // In the long form, `count` bytes contain the length.
  const count = first & 0x7f;
  let length = 0;
  for (let index = 0; index < count; index += 1) {
    length = length * 256 + (bytes[at + 2 + index] ?? 0);
  }
  const start = at + 2 + count;
  return { tag, start, end: start + length };
}
