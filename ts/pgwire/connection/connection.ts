/**
 * One socket: startup, login and conversation. Messages are processed one at a time, and replies
 * are buffered. Further rows are sent only after the client has accepted the previous bytes.
 */
import type { Socket } from 'node:net';

import { type Authenticator, CallerDisconnected, type LoginObserver } from '../../auth/index.js';
import { isLoopback, plainAddress } from '../../config/index.js';
import type { BoundedLog, Logger } from '../../observability/index.js';
import type { Credentials } from '../../tls/index.js';
import {
  type HandoffResult,
  type Handoff,
  principalKey,
  type DurationObserver,
  type SessionHost,
} from '../../session/index.js';
import { busyPoll, type Pace, type Slot, stopReading } from '../../sockets/index.js';
import type { CancelKeys } from './cancel-keys.js';
import {
  type ClientMessage,
  readMessage,
  readStartup,
  type StartupMessage,
} from '../protocol/client-messages.js';
import { Conversation } from '../conversation/conversation.js';
import type { Drain, Drained } from './drain.js';
import { type Frame, FrameReader } from '../protocol/frames.js';
import { beginsHandshake, encrypt, namedProtocol } from './encryption.js';
import type { Entered, LoginBook, LoginExchange } from '../login/login.js';
import { ProtocolError } from '../protocol/protocol-error.js';
import { ProvidedLogin, SessionUser } from '../login/provided-login.js';
import * as reply from '../protocol/server-messages.js';
import { refuseDumps, statusParameters } from './session-start.js';

const LOGIN_LATE = 'login took too long';
/** Maximum number of bytes that a client may send ahead of the message being processed. */
const INBOUND_BYTES = 1_048_576;
/** Maximum number of buffered reply bytes before they are written without a flush. */
const OUTBOUND_BYTES = 65_536;
const AUTH_MESSAGE_BYTES = 65_536;
/** Delay before a refused login is answered, regardless of why it was refused. */
const REFUSAL_DELAY_MS = 200;

export interface ConnectionServices {
  readonly sessions: SessionHost;
  /** Records statement durations. */
  readonly seconds: DurationObserver | undefined;
  readonly observer: LoginObserver | undefined;
  readonly authenticator: Authenticator | undefined;
  readonly logins: LoginBook;
  readonly cancelKeys: CancelKeys;
  readonly logger: Logger;
  readonly refusals: BoundedLog;
  readonly readOnly: boolean;
  readonly messageBytesMax: number;
  readonly statementsMax: number;
  readonly idleMs: number;
  readonly loginMs: number;
  /** Certificate and key; `null` if encryption is unavailable. */
  readonly credentials: Credentials | null;
  /** Whether connections from other machines must be encrypted. */
  readonly requireEncryption: boolean;
  /** Whether connections may be handed off to the engine. */
  readonly handsOff: boolean;
  /** The state of the server's shutdown. */
  readonly drain: Pick<Drain, 'isOn' | 'check'>;
}

/** Messages that start a statement; the login must still be valid when they arrive. */
const BEGINS = new Set(['query', 'parse', 'execute']);

type Stage = 'startup' | 'login' | 'ready' | 'ended';

const ENDING = 'terminating connection due to administrator command';

export class Connection implements Drained {
  /** The client's socket; after a TLS handshake, the encrypted socket. */
  private socket: Socket;
  private readonly slot: Slot;
  private readonly services: ConnectionServices;
  private readonly reader = new FrameReader();
  private readonly pace: Pace;
  private stage: Stage = 'startup';
  private encryptionRequests = new Set<string>();
  private isEncrypted = false;
  private parameters: ReadonlyMap<string, string> = new Map();
  private login: LoginExchange | ProvidedLogin | null = null;
  private sessionUser: SessionUser | null = null;
  private conversation: Conversation | null = null;
  private outbound: Buffer[] = [];
  private outboundBytes = 0;
  private working = false;
  /** Whether the last message ended a unit of work: a Sync, or a simple query. */
  private isBetween = true;
  /** The handoff to the engine, if active. */
  private handoff: Handoff | null = null;
  /** The error that ends the connection as soon as the handoff ends. */
  private fate: unknown = null;
  private processId = 0;
  private timer: NodeJS.Timeout | null = null;

  constructor(socket: Socket, slot: Slot, services: ConnectionServices) {
    this.socket = socket;
    this.slot = slot;
    this.services = services;
    this.pace = busyPoll.paceOf(socket);
    slot.displace = () => {
      const message = 'too many connections: closed this one, which has not logged in';
      this.failConnection(new ProtocolError('53300', message, true));
    };
    this.listenTo(socket);
    this.setTimer(services.loginMs, LOGIN_LATE);
  }

  private listenTo(socket: Socket): void {
    socket.on('data', (chunk: Buffer) => {
      if (this.isHandshake(chunk)) {
        this.encrypt(chunk);
        return;
      }
      this.pace.received();
      this.reader.push(chunk);
      if (this.reader.buffered > INBOUND_BYTES && this.working) {
        socket.pause();
      }
      void this.work();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.end();
    });
  }

  /** Ends the conversation immediately, and cancels the running statement. */
  terminate(): void {
    this.failConnection(new ProtocolError('57P01', ENDING, true));
  }

  shutdown(): void {
    // A client that has not sent anything yet is refused when its first message arrives.
    if (this.stage !== 'startup') {
      this.terminate();
    }
  }

  revokeHandoff(): void {
    this.handoff?.revoke(true);
  }

  get busy(): boolean {
    return this.working || this.handoff !== null || this.conversation?.state === 'copying';
  }

  /** Processes the received messages in order. */
  private async work(): Promise<void> {
    if (this.working || this.handoff !== null) {
      return;
    }
    this.working = true;
    try {
      let frame = this.hasEnded() ? null : this.nextFrame();
      while (frame !== null) {
        if (this.stage === 'ready') {
          this.clearTimer();
          this.refuseNewWork(frame);
        }
        const waits = this.handleFrame(frame);
        if (waits !== undefined) {
          await (this.slot.hasEntered ? waits : this.slot.during(() => waits));
        }
        // A client that pipelines requests without reading replies is throttled like one that reads
        // slowly.
        if (this.socket.writableNeedDrain && !this.hasEnded()) {
          await this.drained();
        }
        if (this.socket.isPaused()) {
          this.socket.resume();
        }
        frame = this.hasEnded() ? null : this.nextFrame();
      }
    } catch (error) {
      this.failConnection(error);
    } finally {
      this.working = false;
    }
    if (this.socket.isPaused()) {
      this.socket.resume();
    }
    this.flush();
    if (!this.handOff()) {
      this.pace.answered();
      if (this.stage === 'ready' && this.conversation?.isListening !== true) {
        this.setTimer(this.services.idleMs, 'the session was idle for too long');
      }
    }
    this.services.drain.check();
  }

  // ---- handoffs ----

  /** Hands the connection off to the engine if its requests repeat; returns false otherwise. */
  private handOff(): boolean {
    const { conversation, services } = this;
    const mayHandOff =
      this.stage === 'ready' &&
      this.isBetween &&
      this.reader.buffered === 0 &&
      !services.drain.isOn;
    const eligible = mayHandOff ? (conversation?.eligible() ?? null) : null;
    const socket = eligible === null ? null : stopReading(this.socket);
    if (conversation === null || eligible === null || socket === null) {
      return false;
    }
    try {
      this.handoff = conversation.handOff(socket.descriptor, eligible);
    } catch (error) {
      // The handoff failed, so the connection stays in Node.
      services.logger.error('handoff_failed', { error });
      socket.resume();
      return false;
    }
    this.handoff.ended
      .finally(() => {
        this.handoff = null;
        socket.resume();
      })
      .then((back) => this.endHandoff(back))
      .catch((error: unknown) => {
        this.failConnection(error);
      });
    return true;
  }

  /** Resumes with the bytes that the engine did not answer. */
  private async endHandoff(back: HandoffResult): Promise<void> {
    if (this.hasEnded()) {
      back.reply?.stream?.cancel();
      return;
    }
    if (back.unsent.length > 0) {
      this.write(back.unsent);
    }
    if (this.fate !== null) {
      back.reply?.stream?.cancel();
      this.failConnection(this.fate);
      return;
    }
    this.isBetween = back.last === null;
    this.reader.push(back.bytes);
    this.working = true;
    try {
      await this.conversation?.endHandoff(back);
    } finally {
      this.working = false;
    }
    await this.work();
  }

  /** While the server stops, a started unit of work may finish, but no new one starts. */
  private refuseNewWork({ type }: Frame): void {
    const { drain } = this.services;
    if (drain.isOn && this.isBetween && this.conversation?.state !== 'copying') {
      throw new ProtocolError('57P01', ENDING, true);
    }
    this.isBetween = type === 'S' || type === 'Q';
  }

  private hasEnded(): boolean {
    return this.stage === 'ended';
  }

  private nextFrame(): Frame | null {
    if (this.stage === 'startup') {
      return this.reader.nextStartup();
    }
    if (this.stage === 'login') {
      return this.reader.next(AUTH_MESSAGE_BYTES);
    }
    while (this.reader.peek(this.services.messageBytesMax)) {
      const { conversation } = this;
      const mayRepeat = conversation?.isRepeating === true && this.sessionUser?.refusal() === null;
      if (!mayRepeat || !conversation.repeats(this.reader)) {
        return this.reader.pick();
      }
      this.reader.skip();
    }
    return null;
  }

  /** Handles a frame. Returns a promise if the next frame must wait for it. */
  private handleFrame(frame: Frame): Promise<void> | undefined {
    if (this.stage === 'startup') {
      this.handleStartup(readStartup(frame));
      return undefined;
    }
    return this.stage === 'login' ? this.handleLogin(frame) : this.handleMessage(frame);
  }

  private handleMessage(frame: Frame): Promise<void> | undefined {
    const { conversation } = this;
    if (conversation === null) {
      return undefined;
    }
    let message;
    try {
      message = readMessage(frame);
    } catch (error) {
      if (error instanceof ProtocolError && error.fatal) {
        throw error;
      }
      return conversation.malformed(error, frame.type === 'Q');
    }
    const refusal = BEGINS.has(message.kind) ? (this.sessionUser?.refusal() ?? null) : null;
    if (refusal !== null) {
      return this.handleUnless(refusal, conversation, message);
    }
    const continues = conversation.handle(message);
    return continues === true ? undefined : this.finishUnless(continues);
  }

  /** Handles a message if the login is still valid. */
  private async handleUnless(
    refusal: ProtocolError | Promise<ProtocolError | null>,
    conversation: Conversation,
    message: ClientMessage,
  ): Promise<void> {
    const error = await refusal;
    if (error === null) {
      await this.finishUnless(conversation.handle(message));
    } else if (error.fatal) {
      throw error;
    } else {
      await conversation.malformed(error, message.kind === 'query');
    }
  }

  private async finishUnless(continues: boolean | Promise<boolean>): Promise<void> {
    if (!(await continues)) {
      this.finish();
    }
  }

  // ---- start-up ----

  private handleStartup(message: StartupMessage): void {
    switch (message.kind) {
      case 'ssl':
      case 'gss':
        this.answerEncryption(message.kind);
        break;
      case 'cancel':
        this.services.cancelKeys.cancel(message.processId, message.secret);
        this.finish();
        break;
      case 'startup':
        this.begin(message);
        break;
      default:
    }
  }

  private answerEncryption(kind: 'ssl' | 'gss'): void {
    // Refused, because bytes that were sent unencrypted after the request would otherwise be
    // processed as if they had been encrypted.
    if (this.encryptionRequests.has(kind) || this.reader.buffered > 0) {
      throw new ProtocolError('08P01', 'received unencrypted data after encryption request', true);
    }
    this.encryptionRequests.add(kind);
    const accepts = kind === 'ssl' && this.services.credentials !== null && !this.isEncrypted;
    this.write(Buffer.from(accepts ? 'S' : 'N', 'latin1'));
    this.flush();
    if (accepts) {
      this.encrypt();
    }
  }

  /** Whether a client starts the handshake without a request (`sslnegotiation=direct`). */
  private isHandshake(chunk: Buffer): boolean {
    return (
      this.stage === 'startup' &&
      this.services.credentials !== null &&
      this.encryptionRequests.size === 0 &&
      this.reader.buffered === 0 &&
      beginsHandshake(chunk)
    );
  }

  /**
   * Encrypts the connection. `received` contains the first bytes of a handshake that was not
   * requested.
   */
  private encrypt(received?: Buffer): void {
    const { credentials } = this.services;
    if (credentials === null) {
      return;
    }
    const secure = encrypt(this.socket, credentials, received);
    this.socket = secure;
    this.slot.carry(secure);
    this.isEncrypted = true;
    if (received !== undefined) {
      this.encryptionRequests.add('ssl');
      secure.once('secure', () => {
        if (!namedProtocol(secure)) {
          const message = 'a direct TLS connection must negotiate the protocol postgresql (ALPN)';
          this.failConnection(new ProtocolError('08P01', message, true));
        }
      });
    }
    this.listenTo(secure);
  }

  private begin(message: Extract<StartupMessage, { kind: 'startup' }>): void {
    if (message.major !== 3) {
      const version = `${message.major}.${message.minor}`;
      const text = `unsupported frontend protocol ${version}: server supports 3.0`;
      throw new ProtocolError('0A000', text, true);
    }
    const unknown = [...message.parameters.keys()].filter((name) => name.startsWith('_pq_.'));
    if (message.minor > 0 || unknown.length > 0) {
      this.write(reply.negotiateProtocolVersion(0, unknown));
    }
    if (this.services.drain.isOn) {
      throw new ProtocolError('57P03', 'the database system is shutting down', true);
    }
    if (this.slot.refusal !== null) {
      const message = `sorry, too many clients already: ${this.slot.refusal}`;
      throw new ProtocolError('53300', message, true);
    }
    this.refusePlainText();
    this.parameters = message.parameters;
    refuseDumps(message.parameters);
    const user = message.parameters.get('user') ?? '';
    const { authenticator } = this.services;
    const isElsewhere = authenticator?.needsPlainPassword(user) === true;
    if (user === '' && !isElsewhere) {
      throw new ProtocolError('28000', 'no PostgreSQL user name specified in startup packet', true);
    }
    const caller = { address: this.socket.remoteAddress ?? '', connection: this.socket };
    const endPoint = this.isEncrypted ? (this.services.credentials?.endPoint ?? null) : null;
    if (authenticator !== undefined && isElsewhere) {
      this.refuseOpenPasswords(authenticator);
      this.login = new ProvidedLogin(authenticator, user, caller);
    } else {
      this.login = this.services.logins.begin(user, caller, endPoint);
    }
    this.stage = 'login';
    this.write(this.login.challenge());
    this.flush();
  }

  /**
   * Refuses a login over an unencrypted connection if it would reveal the provider's password on
   * the network.
   */
  private refuseOpenPasswords({ signOn }: Authenticator): void {
    if (!this.isEncrypted && !this.isLocal && signOn?.settings.plainTextTokens !== true) {
      const message = 'identity provider logins require encryption: set sslmode=require';
      throw new ProtocolError('28000', message, true);
    }
  }

  private get isLocal(): boolean {
    return isLoopback(plainAddress(this.socket.remoteAddress));
  }

  private refusePlainText(): void {
    if (this.services.requireEncryption && !this.isEncrypted && !this.isLocal) {
      const message = 'this server accepts only encrypted connections: set sslmode=require';
      throw new ProtocolError('28000', message, true);
    }
  }

  // ---- login ----

  private async handleLogin(frame: Frame): Promise<void> {
    if (frame.type !== 'p' || this.login === null) {
      if (frame.type === 'X') {
        this.finish();
        return;
      }
      throw new ProtocolError('08P01', `expected password response, got '${frame.type}'`, true);
    }
    let step;
    try {
      step = await this.login.answer(frame.body);
    } catch (error) {
      await this.noteRefusal(error);
      throw error;
    }
    if (step.send !== null) {
      this.write(step.send);
    }
    if (step.entered === null) {
      this.flush();
    } else {
      this.welcome(step.entered);
    }
  }

  private async noteRefusal(error: unknown): Promise<void> {
    if (
      error instanceof CallerDisconnected ||
      (error instanceof ProtocolError && error.sqlState === '53300')
    ) {
      // If the password was not checked, the attempt does not count as a failure.
      return;
    }
    const user = this.parameters.get('user') ?? '';
    const { remoteAddress = '' } = this.socket;
    this.services.observer?.refusedLogin(user, 'PGWIRE', remoteAddress);
    this.services.refusals.add({ user, address: remoteAddress });
    await new Promise((resolve) => setTimeout(resolve, REFUSAL_DELAY_MS));
  }

  private welcome(entered: Entered): void {
    const { services } = this;
    const { identity } = entered;
    const readOnly = entered.readOnly || services.readOnly;
    const sessionUser = new SessionUser(entered, readOnly, this.login instanceof ProvidedLogin);
    this.sessionUser = sessionUser;
    const session = services.sessions.open(sessionUser, true, services.seconds);
    services.observer?.signedIn(identity, 'PGWIRE', this.socket.remoteAddress ?? '');
    const outlet = {
      queue: (bytes: Buffer): void => {
        this.write(bytes);
      },
      send: (bytes: Buffer): Promise<void> => this.send(bytes),
      flush: (): void => {
        this.flush();
      },
    };
    const limits = {
      statementsMax: services.statementsMax,
      startup: this.parameters,
      handsOff: services.handsOff && !this.isEncrypted && sessionUser.isLasting,
    };
    const line = {
      isIdle: (): boolean => !this.working && this.isBetween && !this.hasEnded(),
      drained: async (): Promise<void> => {
        if (this.socket.writableNeedDrain) {
          await this.drained();
        }
      },
      refusal: () => sessionUser.refusal(),
      fail: (error: ProtocolError): void => {
        this.failConnection(error);
      },
    };
    const conversation = new Conversation(session, outlet, limits, line);
    this.conversation = conversation;
    this.stage = 'ready';
    this.slot.enter();
    this.clearTimer();
    this.write(reply.authenticationOk());
    for (const [name, value] of statusParameters(entered, conversation)) {
      this.write(reply.parameterStatus(name, value));
    }
    const cancelKey = services.cancelKeys.register(() => {
      conversation.cancel();
    });
    this.processId = cancelKey.processId;
    session.backend = cancelKey.processId;
    services.sessions.backends.add(cancelKey.processId, {
      key: principalKey(sessionUser),
      cancel: () => {
        conversation.cancel();
      },
      terminate: () => {
        this.terminate();
      },
    });
    this.write(reply.backendKeyData(cancelKey.processId, cancelKey.secret));
    this.write(reply.readyForQuery('I'));
    this.flush();
  }

  // ---- output ----

  private write(bytes: Buffer): void {
    this.outbound.push(bytes);
    this.outboundBytes += bytes.length;
    if (this.outboundBytes > OUTBOUND_BYTES) {
      this.flush();
    }
  }

  /** Sends the buffered bytes in one write. */
  private flush(): boolean {
    if (this.outbound.length === 0) {
      return true;
    }
    const bytes = this.outbound.length === 1 ? this.outbound[0] : Buffer.concat(this.outbound);
    this.outbound = [];
    this.outboundBytes = 0;
    if (bytes === undefined || this.socket.destroyed || this.socket.writableEnded) {
      return true;
    }
    return this.socket.write(bytes);
  }

  private async send(bytes: Buffer): Promise<void> {
    if (this.stage === 'ended') {
      throw new ProtocolError('08006', 'the client has disconnected', true);
    }
    this.outbound.push(bytes);
    this.outboundBytes += bytes.length;
    if (this.outboundBytes <= OUTBOUND_BYTES) {
      return;
    }
    if (!this.flush()) {
      await this.drained();
    }
  }

  /** Resolves when the client has read enough; rejects when it has disconnected. */
  private drained(): Promise<void> {
    const { socket } = this;
    return new Promise((resolve, reject) => {
      const done = (): void => {
        socket.off('drain', done);
        socket.off('close', done);
        if (socket.destroyed) {
          reject(new ProtocolError('08006', 'the client has disconnected', true));
        } else {
          resolve();
        }
      };
      socket.on('drain', done);
      socket.on('close', done);
      if (socket.destroyed) {
        done();
      }
    });
  }

  // ---- connection end ----

  private failConnection(error: unknown): void {
    if (this.stage === 'ended') {
      return;
    }
    if (this.handoff !== null) {
      // The engine may be writing to the client. Its data must not be truncated, so the error is
      // deferred until the handoff ends.
      this.fate ??= error;
      this.handoff.revoke(false);
      return;
    }
    const known = error instanceof ProtocolError;
    if (!known) {
      this.services.logger.error('connection_failed', { error });
    }
    const sqlState = known ? error.sqlState : 'XX000';
    const message = known ? error.message : 'internal error';
    this.write(reply.errorResponse({ severity: 'FATAL', sqlState, message }));
    this.finish();
  }

  /** Sends the buffered bytes and closes. */
  private finish(): void {
    this.flush();
    this.socket.end();
    this.end();
  }

  private end(): void {
    if (this.stage === 'ended') {
      return;
    }
    this.stage = 'ended';
    this.clearTimer();
    this.services.cancelKeys.forget(this.processId);
    this.services.sessions.backends.remove(this.processId);
    const { conversation } = this;
    this.conversation = null;
    conversation?.cancel();
    conversation?.close();
  }

  private setTimer(delayMs: number, reason: string): void {
    this.clearTimer();
    this.timer = setTimeout(() => {
      // Uses PostgreSQL's codes, which distinguish a client that never logged in from an idle
      // session.
      const sqlState = reason === LOGIN_LATE ? '57014' : '57P05';
      this.failConnection(new ProtocolError(sqlState, reason, true));
    }, delayMs);
    this.timer.unref();
  }

  private clearTimer(): void {
    if (this.timer !== null) {
      clearTimeout(this.timer);
    }
    this.timer = null;
  }
}
