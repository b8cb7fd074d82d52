/**
 * A listener's connections: limits their number, chooses which one to displace, and ends them.
 *
 * A server checks its connections several times a second, so code that ends a connection need not
 * handle clients that hang. A client that was asked to close, or has half-closed, is disconnected
 * after a grace period of one second. A client that does not read is disconnected at the stall
 * limit. Connections without a login cannot block other clients: if slots are scarce, the
 * connection without a login that has been idle longest is closed.
 */
import { setMaxListeners } from 'node:events';
import type { Socket } from 'node:net';

import { isLoopback, machineOf, plainAddress } from '../config/index.js';

export interface SlotLimits {
  /** Maximum number of open connections. */
  readonly all: number;
  /** Maximum number of connections per remote address. */
  readonly perAddress: number;
  /** Maximum number of connections without a login. */
  readonly withoutLogin: number;
  /** Milliseconds after which a client that reads nothing is disconnected. */
  readonly stallMs: number;
}

/** Time between announcing that a connection ends and closing it. */
const GRACE_MS = 1_000;
/**
 * Maximum number of connections that receive a refusal although a limit is exceeded. Each must read
 * it within `REFUSED_MS` milliseconds. Further connections are dropped without a reply.
 */
export const REFUSED_AT_ONCE = 64;
const REFUSED_MS = 2_000;
const POLL_MS = 250;
/**
 * Number of polls after which an idle client can be displaced: `SILENT_POLLS` if it has not sent
 * anything yet, otherwise `PAUSE_POLLS`. All sockets are read between two polls, so that delays in
 * the server do not count against clients.
 */
const SILENT_POLLS = 2;
const PAUSE_POLLS = 5;
/**
 * Maximum number of polls that a connection may remain without a login. It also applies to active
 * clients, because no login takes that long.
 */
const WITHOUT_LOGIN_POLLS = 40;

const slots = new WeakMap<object, Slot>();

/** Returns the slot of a connection, given any of its sockets. */
export function slotOf(socket: object): Slot | undefined {
  return slots.get(socket);
}

/** The code that temporarily answers a connection's client. */
interface HandedOff {
  /**
   * Resolves when the handoff has ended and the bytes received so far for the next request have
   * been read.
   */
  readonly ended: Promise<void>;
  /** Revokes the handoff. With `gently`, the running statement may finish. */
  revoke(gently: boolean): void;
}

/** Slot parameters. */
interface SlotSetting {
  readonly refusal: string | null;
  readonly now: number;
  readonly stopping: AbortSignal;
  readonly mayHandOff: () => boolean;
  readonly onReleased: (slot: Slot) => void;
}

/** The slot that a connection occupies. */
export class Slot {
  /** The error to send as the only reply; `null` if the connection is accepted. */
  readonly refusal: string | null;
  readonly address: string;
  readonly machine: string;
  readonly openedAt: number;
  /** Aborts when the server stops; it also ends work in progress. */
  readonly stopping: AbortSignal;
  /** The handoff, while one is active. */
  handedOff: HandedOff | null = null;
  /**
   * Closes the connection to free its slot for another one. A protocol can first send an error
   * message.
   */
  displace: () => void;
  readonly #socket: Socket;
  readonly #mayHandOff: () => boolean;
  readonly #onReleased: (slot: Slot) => void;
  /** The socket to write to; after a TLS handshake, the encrypted socket. */
  #outer: Socket;
  #hasEntered = false;
  #work = 0;
  #isReleased = false;
  #moved = 0;
  #movedAt: number;
  #polls = 0;
  #idlePolls = 0;
  #waiting = 0;
  #readAt: number;
  #endedAt = Infinity;

  /** Internal; call `Slots.take` instead. */
  constructor(socket: Socket, { refusal, now, stopping, mayHandOff, onReleased }: SlotSetting) {
    this.#socket = socket;
    this.#outer = socket;
    this.#mayHandOff = mayHandOff;
    this.#onReleased = onReleased;
    this.refusal = refusal;
    this.stopping = stopping;
    this.address = plainAddress(socket.remoteAddress);
    this.machine = machineOf(this.address);
    this.openedAt = now;
    this.#movedAt = now;
    this.#readAt = now;
    this.displace = () => socket.destroy();
  }

  get hasEntered(): boolean {
    return this.#hasEntered;
  }

  /** Whether the connection may be handed off: it is logged in, and the server is not stopping. */
  get mayBeHandedOff(): boolean {
    return this.#hasEntered && this.handedOff === null && this.#mayHandOff();
  }

  /** Marks the connection as logged in. */
  enter(): void {
    this.#hasEntered = true;
  }

  /** Runs work on the server, during which the waiting client cannot be displaced. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#work += 1;
    try {
      return await work();
    } finally {
      this.#work -= 1;
    }
  }

  /** Uses the encrypted `socket` from now on. */
  carry(socket: Socket): void {
    this.#outer = socket;
    slots.set(socket, this);
  }

  /** Stops counting the connection, regardless of its socket's state. */
  release(): void {
    if (!this.#isReleased) {
      this.#isReleased = true;
      this.#onReleased(this);
    }
  }

  /** Closes the connection immediately. */
  cut(): void {
    this.#outer.destroy();
    this.#socket.destroy();
  }

  /** Closes the connection if it hangs. */
  poll(now: number, stallMs: number): void {
    this.#polls += 1;
    this.#idlePolls += 1;
    this.#follow(now);
    const outer = this.#outer;
    const { writableLength } = outer;
    if (writableLength === 0 || writableLength !== this.#waiting) {
      this.#readAt = now;
    }
    this.#waiting = writableLength;
    if (outer.writableEnded || this.#socket.writableEnded) {
      this.#endedAt = Math.min(this.#endedAt, now);
    }
    const isLate = this.refusal !== null && now - this.openedAt >= REFUSED_MS;
    if (isLate || now - this.#endedAt >= GRACE_MS || now - this.#readAt >= stallMs) {
      this.cut();
    }
  }

  /**
   * Returns the time at which the connection became idle; `null` if the connection cannot be
   * displaced. With `evenIfActive`, returns the time at which it was opened, even if it was active
   * recently.
   */
  idleSince(now: number, evenIfActive = false): number | null {
    if (this.#hasEntered || this.refusal !== null || this.#work > 0) {
      return null;
    }
    if (evenIfActive) {
      return this.openedAt;
    }
    this.#follow(now);
    const pause = this.#socket.bytesRead === 0 ? SILENT_POLLS : PAUSE_POLLS;
    const isIdle = this.#idlePolls >= pause || this.#polls >= WITHOUT_LOGIN_POLLS;
    return isIdle ? this.#movedAt : null;
  }

  /** Displaces the connection; only its last message is still sent. */
  evict(): void {
    this.release();
    this.displace();
    setTimeout(() => this.cut(), GRACE_MS).unref();
  }

  #follow(now: number): void {
    const { bytesRead, bytesWritten, writableLength } = this.#socket;
    const moved = bytesRead + bytesWritten - writableLength;
    if (moved !== this.#moved) {
      this.#moved = moved;
      this.#movedAt = now;
      this.#idlePolls = 0;
    }
  }
}

/** All of a listener's connections. */
export class Slots {
  readonly #limits: () => SlotLimits;
  readonly #now: () => number;
  /**
   * Slots, keyed by the client's address and port, because an encrypted connection has two socket
   * objects.
   */
  readonly #open = new Map<string, Slot>();
  readonly #byMachine = new Map<string, number>();
  readonly #stop = new AbortController();
  #refused = 0;
  #isHandingOff = true;
  #poller: NodeJS.Timeout | null = null;

  /** `limits` returns the current configuration. */
  constructor(limits: () => SlotLimits, now: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
    // The number of event listeners is not limited, because every running request and response adds
    // one.
    setMaxListeners(0, this.#stop.signal);
  }

  /** Number of accepted connections. */
  get size(): number {
    return this.#open.size - this.#refused;
  }

  /** The slot for a new connection; `null` if it was dropped. */
  admit(socket: Socket): Slot | null {
    if (socket.remoteAddress === undefined) {
      socket.destroy();
      return null;
    }
    const now = this.#now();
    const refusal = this.#refusal(plainAddress(socket.remoteAddress), now);
    if (refusal !== null && this.#refused >= REFUSED_AT_ONCE) {
      socket.destroy();
      return null;
    }
    const end = endOf(socket);
    const onReleased = (slot: Slot): void => {
      this.#count(slot, -1);
      if (this.#open.get(end) === slot) {
        this.#open.delete(end);
      }
    };
    const mayHandOff = (): boolean => this.#isHandingOff;
    const stopping = this.#stop.signal;
    const slot = new Slot(socket, { refusal, now, stopping, mayHandOff, onReleased });
    this.#open.set(end, slot);
    this.#count(slot, 1);
    slots.set(socket, slot);
    socket.setNoDelay(true);
    socket.once('close', () => {
      slot.release();
    });
    this.#watch();
    return slot;
  }

  /** Switches an accepted connection to the encrypted `socket`. */
  carry(socket: Socket): void {
    this.#open.get(endOf(socket))?.carry(socket);
  }

  /** Cancels running statements; their clients receive an error. */
  interrupt(): void {
    this.#stop.abort();
  }

  /** Revokes all handoffs and prevents new ones; running statements may finish. */
  async revokeHandoffs(): Promise<void> {
    this.#isHandingOff = false;
    const handedOff = [...this.#open.values()].flatMap((slot) => slot.handedOff ?? []);
    for (const handoff of handedOff) {
      handoff.revoke(true);
    }
    await Promise.all(handedOff.map((handoff) => handoff.ended));
  }

  /** Closes every connection immediately. */
  cutAll(): void {
    for (const slot of this.#open.values()) {
      slot.cut();
    }
  }

  #refusal(address: string, now: number): string | null {
    const { all, perAddress, withoutLogin } = this.#limits();
    const machine = machineOf(address);
    const ofMachine = (this.#byMachine.get(machine) ?? 0) >= perAddress && !isLoopback(address);
    if (ofMachine && !this.#evict(now, machine)) {
      return `too many connections from ${address} [limit=${perAddress}]`;
    }
    const isFull = this.size >= all;
    const isQuotaFull = this.#withoutLogin() >= withoutLogin;
    if ((isFull || isQuotaFull) && !this.#evict(now)) {
      // Even if no connection is idle, the quota for connections without a login is enforced.
      return isFull && !(isQuotaFull && this.#evict(now, null, true))
        ? `too many connections [limit=${all}]`
        : null;
    }
    return null;
  }

  #withoutLogin(): number {
    let count = 0;
    for (const slot of this.#open.values()) {
      count += slot.hasEntered || slot.refusal !== null ? 0 : 1;
    }
    return count;
  }

  /**
   * Displaces a connection without a login: the longest-idle one of the machine that has most of
   * them. Returns false if none is idle. With `evenIfActive`, displaces the connection that has
   * been open longest, even if it was active recently.
   */
  #evict(now: number, machine: string | null = null, evenIfActive = false): boolean {
    const idle = new Map<string, { count: number; slot: Slot; since: number }>();
    for (const slot of this.#open.values()) {
      const isCandidate = machine === null || slot.machine === machine;
      const since = isCandidate ? slot.idleSince(now, evenIfActive) : null;
      if (since !== null) {
        const known = idle.get(slot.machine) ?? { count: 0, slot, since };
        const first = since < known.since ? { slot, since } : known;
        idle.set(slot.machine, { ...first, count: known.count + 1 });
      }
    }
    const [candidate] = [...idle.values()].sort((a, b) => b.count - a.count || a.since - b.since);
    candidate?.slot.evict();
    return candidate !== undefined;
  }

  #count({ machine, refusal }: Slot, change: number): void {
    if (refusal !== null) {
      this.#refused += change;
      return;
    }
    const count = (this.#byMachine.get(machine) ?? 0) + change;
    if (count > 0) {
      this.#byMachine.set(machine, count);
    } else {
      this.#byMachine.delete(machine);
    }
  }

  #watch(): void {
    this.#poller ??= setInterval(() => {
      const now = this.#now();
      const { stallMs } = this.#limits();
      for (const slot of this.#open.values()) {
        slot.poll(now, stallMs);
      }
      if (this.#open.size === 0 && this.#poller !== null) {
        clearInterval(this.#poller);
        this.#poller = null;
      }
    }, POLL_MS).unref();
  }
}

function endOf(socket: Socket): string {
  return `${socket.remoteAddress ?? ''} ${socket.remotePort ?? 0}`;
}
