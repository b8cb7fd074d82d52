/**
 * SCRAM-SHA-256, server side (RFC 5802, RFC 7677). Unknown users go through the same exchange, with
 * a verifier that no password matches.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

import type { ScramVerifier } from '../../auth/index.js';
import { ProtocolError } from '../protocol/protocol-error.js';

export const SCRAM_MECHANISM = 'SCRAM-SHA-256';
/** The same mechanism, bound to the server's certificate (RFC 5929). */
export const SCRAM_PLUS_MECHANISM = 'SCRAM-SHA-256-PLUS';

const NONCE_BYTES = 18;

const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const hash = (bytes: Buffer): Buffer => createHash('sha256').update(bytes).digest();

/** Binds an exchange to the encrypted connection that carries it. */
interface ChannelBinding {
  /** Digest of the server's certificate. */
  readonly endPoint: Buffer;
  /** Whether the client chose the mechanism with channel binding. */
  readonly chosen: boolean;
}

/** A single exchange: call `first`, then `final`. */
export class ScramExchange {
  private readonly verifier: ScramVerifier;
  private readonly channel: ChannelBinding | null;
  private readonly serverNonce: string;
  private binding = '';
  private nonce = '';
  private transcript = '';

  /** `channel` is `null` if channel binding was not offered. */
  constructor(
    verifier: ScramVerifier,
    channel: ChannelBinding | null = null,
    nonce = randomBytes(NONCE_BYTES).toString('base64'),
  ) {
    this.verifier = verifier;
    this.channel = channel;
    this.serverNonce = nonce;
  }

  /** Returns the response to the client's first message. */
  first(message: string): string {
    const match =
      /^((n|y|p=[^,]*),(?:a=[^,]*)?,)((?:m=[^,]*,)?n=[^,]*,r=([\x21-\x2b\x2d-\x7e]+).*)$/s.exec(
        message,
      );
    const [, header, flag, bare, nonce] = match ?? [];
    if (header === undefined || flag === undefined || bare === undefined || nonce === undefined) {
      throw new ProtocolError('08P01', 'malformed SCRAM message', true);
    }
    this.binding = Buffer.concat([Buffer.from(header), this.channelData(flag)]).toString('base64');
    this.nonce = nonce + this.serverNonce;
    const { salt, iterations } = this.verifier;
    const answer = `r=${this.nonce},s=${salt.toString('base64')},i=${iterations}`;
    this.transcript = `${bare},${answer}`;
    return answer;
  }

  /** The binding data that the client's next message must repeat after its own header. */
  private channelData(flag: string): Buffer {
    if (this.channel?.chosen === true) {
      if (flag !== 'p=tls-server-end-point') {
        throw new ProtocolError('08P01', `unsupported SCRAM channel-binding type '${flag}'`, true);
      }
      return this.channel.endPoint;
    }
    if (flag.startsWith('p')) {
      throw new ProtocolError('08P01', 'unexpected channel binding data in SCRAM message', true);
    }
    // The client supports channel binding but believes that the server does not. An attacker
    // between them must have removed the server's offer.
    if (flag === 'y' && this.channel !== null) {
      throw new ProtocolError('28000', 'SCRAM channel binding negotiation error', true);
    }
    return Buffer.alloc(0);
  }

  /** Returns the response to the client's proof; `null` if the proof is wrong. */
  final(message: string): string | null {
    const match = /^(c=([^,]*),r=([^,]*)(?:,.*)?),p=([A-Za-z0-9+/]+=*)$/s.exec(message);
    const [, unproved, binding, nonce, proofText] = match ?? [];
    if (unproved === undefined || proofText === undefined) {
      throw new ProtocolError('08P01', 'malformed SCRAM message', true);
    }
    const proof = Buffer.from(proofText, 'base64');
    if (binding !== this.binding || nonce !== this.nonce || proof.length !== 32) {
      return null;
    }
    const transcript = `${this.transcript},${unproved}`;
    const signature = hmac(this.verifier.storedKey, transcript);
    const clientKey = Buffer.from(proof.map((byte, index) => byte ^ (signature[index] ?? 0)));
    if (!timingSafeEqual(hash(clientKey), this.verifier.storedKey)) {
      return null;
    }
    return `v=${hmac(this.verifier.serverKey, transcript).toString('base64')}`;
  }
}
