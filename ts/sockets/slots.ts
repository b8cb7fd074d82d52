/**
 * The connections of a listener: how many there may be, who makes room, and how each one ends.
 *
 * A server looks at its connections several times a second, so that none of the ways in which a
 * connection can end, or hang, has to remember what is done here: a client that was asked to leave,
 * or has gone half, is cut after a grace second; one that takes nothing of what was sent is cut at
 * the limit. A connection without a login never keeps others out: where room is short, the one that
 * has done nothing for longest is closed for the next one.
 */
import { setMaxListeners } from 'node:events';
import type { Socket } from 'node:net';

import { isLoopback, machineOf, plainAddress } from '../config/index.js';

export interface SlotLimits {
  /** Open connections. */
  readonly all: number;
  /** Of one address that is not this machine's. */
  readonly perAddress: number;
  /** That have not logged in. */
  readonly withoutLogin: number;
  /** A client that takes nothing for so long is gone; milliseconds. */
  readonly stallMs: number;
}

/** From the end that was said to the end that is made. */
const GRACE_MS = 1_000;
/** So many over a limit get an answer, each for so long; beyond them connections are dropped. */
export const REFUSED_AT_ONCE = 64;
const REFUSED_MS = 2_000;
const LOOK_MS = 250;
/**
 * A client says something at once, and goes on soon: who does not can be closed for another. It is
 * counted in looks, between which all sockets are read: time that the server lost is not theirs.
 */
const SILENT_LOOKS = 2;
const PAUSE_LOOKS = 5;
/** However active: no client needs so long for a login, or stays without one. */
const WITHOUT_LOGIN_LOOKS = 40;

const slots = new WeakMap<object, Slot>();

/** The slot of a connection, known by any socket that carries it. */
export function slotOf(socket: object): Slot | undefined {
  return slots.get(socket);
}

/** Something else answers a connection for a while. */
interface HandedOff {
  /** It is back, and what had come of another request is read. */
  readonly ended: Promise<void>;
  /** Ends it. `gently`: what runs may end first. */
  revoke(gently: boolean): void;
}

/** What a slot is made with. */
interface SlotSetting {
  readonly refusal: string | null;
  readonly now: number;
  readonly stopping: AbortSignal;
  readonly mayHandOff: () => boolean;
  readonly left: (slot: Slot) => void;
}

/** One connection. */
export class Slot {
  /** Why nothing but this is answered; null: it may go on. */
  readonly refusal: string | null;
  readonly address: string;
  readonly machine: string;
  readonly openedAt: number;
  /** Called when what runs is to end because the server does. */
  readonly stopping: AbortSignal;
  /** What answers it instead of the server. */
  handedOff: HandedOff | null = null;
  /** Closes it for another one; a protocol that has words for it says them. */
  displace: () => void;
  readonly #socket: Socket;
  readonly #mayHandOff: () => boolean;
  readonly #left: (slot: Slot) => void;
  /** The socket that is written to: the encrypted one, once there is one. */
  #outer: Socket;
  #hasEntered = false;
  #work = 0;
  #hasLeft = false;
  #moved = 0;
  #movedAt: number;
  #looks = 0;
  #idleLooks = 0;
  #waiting = 0;
  #takenAt: number;
  #endedAt = Infinity;

  /** Use `Slots.take`. */
  constructor(socket: Socket, { refusal, now, stopping, mayHandOff, left }: SlotSetting) {
    this.#socket = socket;
    this.#outer = socket;
    this.#mayHandOff = mayHandOff;
    this.#left = left;
    this.refusal = refusal;
    this.stopping = stopping;
    this.address = plainAddress(socket.remoteAddress);
    this.machine = machineOf(this.address);
    this.openedAt = now;
    this.#movedAt = now;
    this.#takenAt = now;
    this.displace = () => socket.destroy();
  }

  get hasEntered(): boolean {
    return this.#hasEntered;
  }

  /** Whether something else may answer it: it is proved, and the server does not end. */
  get mayBeHandedOff(): boolean {
    return this.#hasEntered && this.handedOff === null && this.#mayHandOff();
  }

  /** A login is proved. */
  enter(): void {
    this.#hasEntered = true;
  }

  /** Runs what is the server's to do: its client waits for it, and is not closed meanwhile. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#work += 1;
    try {
      return await work();
    } finally {
      this.#work -= 1;
    }
  }

  /** The connection goes on encrypted, through `socket`. */
  carry(socket: Socket): void {
    this.#outer = socket;
    slots.set(socket, this);
  }

  /** No longer counted, whatever becomes of its socket. */
  leave(): void {
    if (!this.#hasLeft) {
      this.#hasLeft = true;
      this.#left(this);
    }
  }

  /** Ends it at once. */
  cut(): void {
    this.#outer.destroy();
    this.#socket.destroy();
  }

  /** Ends what hangs. */
  look(now: number, stallMs: number): void {
    this.#looks += 1;
    this.#idleLooks += 1;
    this.#follow(now);
    const outer = this.#outer;
    const { writableLength } = outer;
    if (writableLength === 0 || writableLength !== this.#waiting) {
      this.#takenAt = now;
    }
    this.#waiting = writableLength;
    if (outer.writableEnded || this.#socket.writableEnded) {
      this.#endedAt = Math.min(this.#endedAt, now);
    }
    const isLate = this.refusal !== null && now - this.openedAt >= REFUSED_MS;
    if (isLate || now - this.#endedAt >= GRACE_MS || now - this.#takenAt >= stallMs) {
      this.cut();
    }
  }

  /**
   * Since when it could be closed for another; null: it cannot. `anyWay`: though it said something
   * a moment ago.
   */
  idleSince(now: number, anyWay = false): number | null {
    if (this.#hasEntered || this.refusal !== null || this.#work > 0) {
      return null;
    }
    if (anyWay) {
      return this.openedAt;
    }
    this.#follow(now);
    const pause = this.#socket.bytesRead === 0 ? SILENT_LOOKS : PAUSE_LOOKS;
    const isIdle = this.#idleLooks >= pause || this.#looks >= WITHOUT_LOGIN_LOOKS;
    return isIdle ? this.#movedAt : null;
  }

  /** Makes room at once: what is left of it is its last words. */
  makeRoom(): void {
    this.leave();
    this.displace();
    setTimeout(() => this.cut(), GRACE_MS).unref();
  }

  #follow(now: number): void {
    const { bytesRead, bytesWritten, writableLength } = this.#socket;
    const moved = bytesRead + bytesWritten - writableLength;
    if (moved !== this.#moved) {
      this.#moved = moved;
      this.#movedAt = now;
      this.#idleLooks = 0;
    }
  }
}

/** All connections of a listener. */
export class Slots {
  readonly #limits: () => SlotLimits;
  readonly #now: () => number;
  /** By the client's end: an encrypted connection has two sockets here. */
  readonly #open = new Map<string, Slot>();
  readonly #byMachine = new Map<string, number>();
  readonly #stop = new AbortController();
  #refused = 0;
  #isHandingOff = true;
  #looking: NodeJS.Timeout | null = null;

  /** `limits` as they are configured now. */
  constructor(limits: () => SlotLimits, now: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
    // Every body and every answer under way listens.
    setMaxListeners(0, this.#stop.signal);
  }

  /** Connections there are. */
  get size(): number {
    return this.#open.size - this.#refused;
  }

  /** The slot of a new connection; null when it was dropped. */
  take(socket: Socket): Slot | null {
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
    const left = (slot: Slot): void => {
      this.#count(slot, -1);
      if (this.#open.get(end) === slot) {
        this.#open.delete(end);
      }
    };
    const mayHandOff = (): boolean => this.#isHandingOff;
    const stopping = this.#stop.signal;
    const slot = new Slot(socket, { refusal, now, stopping, mayHandOff, left });
    this.#open.set(end, slot);
    this.#count(slot, 1);
    slots.set(socket, slot);
    socket.setNoDelay(true);
    socket.once('close', () => {
      slot.leave();
    });
    this.#watch();
    return slot;
  }

  /** A connection that was taken goes on encrypted, through `socket`. */
  carry(socket: Socket): void {
    this.#open.get(endOf(socket))?.carry(socket);
  }

  /** Cancels what runs; its clients receive an error. */
  interrupt(): void {
    this.#stop.abort();
  }

  /**
   * Connections that are handed off come back, and no other is handed off; what they run may end
   * first.
   */
  async comeBack(): Promise<void> {
    this.#isHandingOff = false;
    const handedOff = [...this.#open.values()].flatMap((slot) => slot.handedOff ?? []);
    for (const one of handedOff) {
      one.revoke(true);
    }
    await Promise.all(handedOff.map((one) => one.ended));
  }

  /** Ends every connection, whatever it is in the middle of. */
  cutAll(): void {
    for (const slot of this.#open.values()) {
      slot.cut();
    }
  }

  #refusal(address: string, now: number): string | null {
    const { all, perAddress, withoutLogin } = this.#limits();
    const machine = machineOf(address);
    const ofMachine = (this.#byMachine.get(machine) ?? 0) >= perAddress && !isLoopback(address);
    if (ofMachine && !this.#makeRoom(now, machine)) {
      return `too many connections from ${address} [limit=${perAddress}]`;
    }
    const isFull = this.size >= all;
    const hasPart = this.#withoutLogin() >= withoutLogin;
    if ((isFull || hasPart) && !this.#makeRoom(now)) {
      // Where none idles, those without a login still have no more than their part.
      return isFull && !(hasPart && this.#makeRoom(now, null, true))
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
   * Closes the connection without a login that has done nothing for longest, of the machine that
   * has most of them; false when all of them are at work. `anyWay`: the one that waits longest,
   * whatever it does.
   */
  #makeRoom(now: number, machine: string | null = null, anyWay = false): boolean {
    const idle = new Map<string, { count: number; slot: Slot; since: number }>();
    for (const slot of this.#open.values()) {
      const isMeant = machine === null || slot.machine === machine;
      const since = isMeant ? slot.idleSince(now, anyWay) : null;
      if (since !== null) {
        const known = idle.get(slot.machine) ?? { count: 0, slot, since };
        const first = since < known.since ? { slot, since } : known;
        idle.set(slot.machine, { ...first, count: known.count + 1 });
      }
    }
    const [most] = [...idle.values()].sort((a, b) => b.count - a.count || a.since - b.since);
    most?.slot.makeRoom();
    return most !== undefined;
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
    this.#looking ??= setInterval(() => {
      const now = this.#now();
      const { stallMs } = this.#limits();
      for (const slot of this.#open.values()) {
        slot.look(now, stallMs);
      }
      if (this.#open.size === 0 && this.#looking !== null) {
        clearInterval(this.#looking);
        this.#looking = null;
      }
    }, LOOK_MS).unref();
  }
}

function endOf(socket: Socket): string {
  return `${socket.remoteAddress ?? ''} ${socket.remotePort ?? 0}`;
}
