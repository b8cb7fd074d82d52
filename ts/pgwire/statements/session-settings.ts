/**
 * Settings that a client can change for later statements: with SET, or with startup parameters.
 *
 * A value that SET assigned in a transaction block is undone by ROLLBACK, and by ROLLBACK TO an
 * earlier savepoint. SET LOCAL ends with its block.
 */
import type { TransactionModes } from '../../session/index.js';
import { ProtocolError } from '../protocol/protocol-error.js';
import {
  type BlockSetting,
  checkIsolation,
  flag,
  isBlockSetting,
  millisecondsOf,
  SETTINGS,
} from './setting-values.js';

/** Values by setting. */
type Values = ReadonlyMap<string, string>;

/** The modes of an open block. */
interface BlockModes {
  readonly readOnly: boolean;
  readonly deferrable: boolean;
}

/** Values in the form in which the conversation uses them. */
interface Decoded {
  readonly timeoutMs: number | undefined;
  readonly nanoseconds: boolean;
  readonly notices: boolean;
  readonly isReadOnly: boolean;
}

/** All values at one time; never changed, so that a savepoint can store it. */
export interface SettingsState {
  readonly session: Values;
  readonly local: Values;
  /** `null` outside a block. */
  readonly modes: BlockModes | null;
}

/** Names of the isolation level. Every level behaves like READ COMMITTED. */
const ISOLATION: ReadonlySet<string> = new Set([
  'transaction_isolation',
  'default_transaction_isolation',
]);

/** Startup parameters that are no settings. */
const NO_SETTINGS: ReadonlySet<string> = new Set(['user', 'database', 'replication', 'options']);

const NONE: Values = new Map();

export class SessionSettings {
  private readonly initial: Values;
  private state: SettingsState = { session: NONE, local: NONE, modes: null };
  /** The state before the open block. */
  private beforeBlock: SettingsState | null = null;
  /** The modes at each open savepoint, outermost first. */
  private enclosing: readonly BlockModes[] = [];
  /** Whether a query has run in the open block. */
  private hasQueried = false;
  private known: { readonly state: SettingsState; readonly decoded: Decoded } | null = null;

  /** `startup` contains the client's startup parameters; `readOnly` the user's default. */
  constructor(startup: ReadonlyMap<string, string> = NONE, readOnly = false) {
    const values = new Map<string, string>();
    if (readOnly) {
      values.set('default_transaction_read_only', 'on');
    }
    for (const [name, value] of [...optionsOf(startup.get('options') ?? ''), ...startup]) {
      const key = name.toLowerCase();
      const setting = NO_SETTINGS.has(name) ? undefined : SETTINGS.get(key);
      if (setting !== undefined) {
        values.set(key, setting.shown(value));
      } else if (ISOLATION.has(key)) {
        checkIsolation(key, value);
      }
    }
    this.initial = values;
  }

  /** The client's time limit; `undefined` if only the server's limit applies. */
  get timeoutMs(): number | undefined {
    return this.decoded.timeoutMs;
  }

  /** Whether TIMESTAMP_NS has nine fractional digits; most drivers fail on more than six. */
  get nanoseconds(): boolean {
    return this.decoded.nanoseconds;
  }

  /** Whether to send notices. */
  get notices(): boolean {
    return this.decoded.notices;
  }

  /** Whether the next statement must not write. */
  get isReadOnly(): boolean {
    return this.decoded.isReadOnly;
  }

  /** The values that every statement reads, decoded once per state. */
  private get decoded(): Decoded {
    if (this.known?.state !== this.state) {
      const milliseconds = millisecondsOf(this.value('statement_timeout'));
      const decoded = {
        // In PostgreSQL, zero disables the timeout. Here, zero means that only the server's timeout
        // applies.
        timeoutMs: milliseconds === 0 ? undefined : milliseconds,
        nanoseconds: this.value('timestamp_precision') === 'ns',
        notices: this.value('client_min_messages') === 'notice',
        isReadOnly: this.modes.readOnly,
      };
      this.known = { state: this.state, decoded };
    }
    return this.known.decoded;
  }

  /** The settings of which the client is notified, with their values. */
  reported(): (readonly [string, string])[] {
    const names = [...SETTINGS.values()].filter(({ isReported }) => isReported === true);
    return names.map(({ name }) => [name, this.value(name)]);
  }

  /**
   * Returns a query for the value of a setting that this class stores; `null` for any other
   * setting.
   */
  valueQuery(name: string): string | null {
    const value = isBlockSetting(name)
      ? this.blockValue(name)
      : SETTINGS.has(name)
        ? this.value(name)
        : null;
    return value === null ? null : `SELECT '${value.replaceAll("'", "''")}' AS "${name}"`;
  }

  /** Changes a setting; `null` means the initial value. */
  set(name: string, value: string | null, local: boolean): void {
    if (value === null) {
      this.setDefault(name, local);
    } else if (isBlockSetting(name)) {
      const isOn = flag(name, value) === 'on';
      this.setModes(name === 'transaction_read_only' ? { readOnly: isOn } : { deferrable: isOn });
    } else if (ISOLATION.has(name)) {
      checkIsolation(name, value);
    } else if (SETTINGS.has(name)) {
      this.store(name, SETTINGS.get(name)?.shown(value) ?? value, local);
    }
  }

  private setDefault(name: string, local: boolean): void {
    if (local && SETTINGS.has(name)) {
      this.store(name, this.initialValue(name), true);
    } else {
      this.reset(name);
    }
  }

  /** Changes the modes of the open block; outside a block, this has no effect. */
  setModes(changed: TransactionModes): void {
    const { modes } = this.state;
    if (modes === null) {
      return;
    }
    if (changed.readOnly === false && modes.readOnly) {
      this.refuseReadWrite();
    }
    this.state = { ...this.state, modes: merged(modes, changed) };
  }

  /** Changes the default modes of later blocks. */
  setDefaults({ readOnly, deferrable }: TransactionModes): void {
    if (readOnly !== undefined) {
      this.store('default_transaction_read_only', readOnly ? 'on' : 'off', false);
    }
    if (deferrable !== undefined) {
      this.store('default_transaction_deferrable', deferrable ? 'on' : 'off', false);
    }
  }

  /** Restores a setting's initial value; without a name, restores all settings. */
  reset(name?: string): void {
    if (name !== undefined && isBlockSetting(name)) {
      const { readOnly, deferrable } = this.defaults;
      this.setModes(name === 'transaction_read_only' ? { readOnly } : { deferrable });
      return;
    }
    const kept = (values: Values): Values =>
      new Map([...values].filter(([key]) => name !== undefined && key !== name));
    const { session, local, modes } = this.state;
    this.state = { session: kept(session), local: kept(local), modes };
  }

  // ---- transaction blocks ----

  /** Called at BEGIN. */
  begin(modes: TransactionModes): void {
    this.beforeBlock = this.state;
    this.enclosing = [];
    this.hasQueried = false;
    this.state = { ...this.state, modes: merged(this.defaults, modes) };
  }

  /** Called when a query runs; afterwards a read-only block cannot become read-write. */
  queried(): void {
    this.hasQueried = true;
  }

  /** Called at SAVEPOINT; returns the state for `rollbackTo`. */
  savepoint(): SettingsState {
    this.enclosing = [...this.enclosing, this.modes];
    return this.state;
  }

  /** Called at RELEASE of a savepoint; `count` is the number of savepoints that remain. */
  release({ modes }: SettingsState, count: number): void {
    // As in PostgreSQL, the modes end with the savepoint, but the values remain.
    this.state = { ...this.state, modes };
    this.enclosing = this.enclosing.slice(0, count);
  }

  /** Called at ROLLBACK TO; `count` is the number of savepoints that remain. */
  rollbackTo(state: SettingsState, count: number): void {
    this.state = state;
    this.enclosing = this.enclosing.slice(0, count);
  }

  /** Called at the end of a block. */
  endBlock(end: 'commit' | 'rollback'): void {
    const state = end === 'rollback' ? (this.beforeBlock ?? this.state) : this.state;
    this.state = { ...state, local: NONE, modes: null };
    this.beforeBlock = null;
    this.enclosing = [];
  }

  private value(name: string): string {
    const { session, local } = this.state;
    return local.get(name) ?? session.get(name) ?? this.initialValue(name);
  }

  private initialValue(name: string): string {
    return this.initial.get(name) ?? SETTINGS.get(name)?.initial ?? '';
  }

  private blockValue(name: BlockSetting): string {
    const { readOnly, deferrable } = this.modes;
    return (name === 'transaction_read_only' ? readOnly : deferrable) ? 'on' : 'off';
  }

  private get defaults(): BlockModes {
    return {
      readOnly: this.value('default_transaction_read_only') === 'on',
      deferrable: this.value('default_transaction_deferrable') === 'on',
    };
  }

  private get modes(): BlockModes {
    return this.state.modes ?? this.defaults;
  }

  private store(name: string, value: string, local: boolean): void {
    const { session, modes } = this.state;
    const others = new Map(this.state.local);
    if (local) {
      this.state = { session, local: others.set(name, value), modes };
      return;
    }
    others.delete(name);
    this.state = { session: new Map(session).set(name, value), local: others, modes };
  }

  private refuseReadWrite(): void {
    const what = 'transaction read-write mode';
    if (this.enclosing.at(-1)?.readOnly === true) {
      const message = `cannot set ${what} inside a read-only transaction`;
      throw new ProtocolError('25001', message);
    }
    if (this.hasQueried) {
      throw new ProtocolError('25001', `${what} must be set before any query`);
    }
  }
}

function merged(modes: BlockModes, changed: TransactionModes): BlockModes {
  return {
    readOnly: changed.readOnly ?? modes.readOnly,
    deferrable: changed.deferrable ?? modes.deferrable,
  };
}

/**
 * Parses the `options` startup parameter: `-c name=value` and `--name=value`. A backslash precedes
 * a space that belongs to a value.
 */
function optionsOf(options: string): (readonly [string, string])[] {
  const words = [...options.matchAll(/(?:\\[^]|[^\s\\])+/g)].map(([word]) =>
    word.replaceAll(/\\([^])/g, '$1'),
  );
  const all: (readonly [string, string])[] = [];
  for (let index = 0; index < words.length; index += 1) {
    let word = words[index] ?? '';
    if (word === '-c') {
      index += 1;
      word = words[index] ?? '';
    } else if (word.startsWith('-c') || word.startsWith('--')) {
      word = word.slice(2);
    } else {
      continue;
    }
    const at = word.indexOf('=');
    if (at > 0) {
      all.push([word.slice(0, at).replaceAll('-', '_'), word.slice(at + 1)]);
    }
  }
  return all;
}
