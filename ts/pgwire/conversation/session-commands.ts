/** Executes session statements that the protocol handles itself. */
import type {
  CopyStream,
  DeclareCursor,
  ExecuteStatement,
  FetchCursor,
  PreparedStatement,
  PrepareStatement,
  Session,
  SessionStatement,
  TransactionModes,
} from '../../session/index.js';
import { quoteName } from '../../session/index.js';
import type { Block } from '../statements/block.js';
import type { Portals } from '../statements/portals.js';
import type { SessionSettings } from '../statements/session-settings.js';
import { inData } from '../protocol/failure.js';
import { ProtocolError } from '../protocol/protocol-error.js';
import * as reply from '../protocol/server-messages.js';
import type { Notifications } from './notifications.js';
import type { Statements } from '../statements/statements.js';
import type { TemporaryTables } from '../statements/temporary-tables.js';

export interface ConversationLimits {
  /** Maximum number of prepared statements per session, and of portals. */
  readonly statementsMax: number;
  /** The client's startup parameters. */
  readonly startup?: ReadonlyMap<string, string>;
  /** Whether repeated queries may be handed off to the engine. */
  readonly handsOff?: boolean;
}

/** Objects that the commands change. */
interface CommandSetting {
  readonly block: Block;
  readonly portals: Portals;
  readonly statements: Statements;
  readonly temporary: TemporaryTables;
  readonly notifications: Notifications;
  readonly outlet: { queue(bytes: Buffer): void };
  readonly settings: SessionSettings;
  readonly session: Pick<Session, 'principal' | 'sequenceValues' | 'become'>;
  prepare(text: string): Promise<PreparedStatement>;
}

/** Session statements other than those for cursors, prepared statements and COPY. */
type SessionCommand = Exclude<
  SessionStatement,
  DeclareCursor | FetchCursor | CopyStream | PrepareStatement | ExecuteStatement
>;

export class SessionCommands {
  private readonly setting: CommandSetting;
  /** The values of which the client knows. */
  private readonly reported: Map<string, string>;

  constructor(setting: CommandSetting) {
    this.setting = setting;
    this.reported = new Map(setting.settings.reported());
  }

  /** Executes a statement and returns its command tag. */
  async apply(statement: SessionCommand): Promise<string> {
    try {
      return await this.run(statement);
    } finally {
      this.report();
    }
  }

  /** Notifies the client of changed settings. */
  private report(): void {
    for (const [name, value] of this.setting.settings.reported()) {
      if (this.reported.get(name) !== value) {
        this.reported.set(name, value);
        this.setting.outlet.queue(reply.parameterStatus(name, value));
      }
    }
  }

  private async run(statement: SessionCommand): Promise<string> {
    switch (statement.kind) {
      case 'Begin':
        this.begin(statement.modes);
        return 'BEGIN';
      case 'Commit': {
        this.setting.portals.endBlock(this.setting.block.status === 'E' ? 'rollback' : 'commit');
        const tag = await this.setting.block.commit();
        this.setting.notifications.endBlock(tag === 'COMMIT');
        await this.setting.temporary.endBlock();
        return tag;
      }
      case 'Rollback':
        this.rollback();
        this.setting.notifications.endBlock(false);
        await this.setting.temporary.endBlock();
        return 'ROLLBACK';
      case 'Savepoint':
        this.setting.block.savepoint(statement.name, this.setting.portals.names);
        return 'SAVEPOINT';
      case 'Release':
        this.setting.block.release(statement.name);
        return 'RELEASE';
      case 'RollbackTo':
        this.rollbackTo(statement.name);
        return 'ROLLBACK';
      case 'Deallocate':
        return this.deallocate(statement.name);
      case 'CloseCursor':
        return this.closeCursor(statement.name);
      case 'Discard':
        return await this.discard(statement.what);
      case 'Reset':
        this.setting.settings.reset(statement.name);
        return 'RESET';
      case 'Unlisten':
        this.setting.notifications.unlisten(statement.channel);
        return 'UNLISTEN';
      case 'Set':
        this.set(statement);
        return 'SET';
      case 'SetTransaction':
        this.setTransaction(statement.modes, statement.defaults);
        return 'SET';
      case 'SetRole':
        await this.setRole(statement.name, statement.local);
        return 'SET';
      case 'ResetRole':
        await this.become(null);
        return 'RESET';
      case 'SetAuthorization':
        if (statement.name !== null) {
          throw unsupported('SET SESSION AUTHORIZATION, use SET ROLE');
        }
        await this.become(null);
        return 'SET';
      case 'LockTable':
        await this.lock(statement.tables);
        return 'LOCK TABLE';
      case 'Chain':
      case 'TwoPhase':
        throw unsupported(statement.kind === 'Chain' ? 'AND CHAIN' : 'two-phase commits');
      case 'Listen':
        await this.setting.notifications.listen(statement.channel);
        return 'LISTEN';
      case 'Notify':
        this.setting.notifications.notify(statement.channel, statement.payload);
        return 'NOTIFY';
    }
  }

  private closeCursor(name: string | null): string {
    const { portals } = this.setting;
    if (name === null) {
      portals.closeAll();
      return 'CLOSE CURSOR ALL';
    }
    portals.get(name, 'cursor');
    portals.close(name);
    return 'CLOSE CURSOR';
  }

  private async discard(what: string): Promise<string> {
    if (what === 'ALL' || /^TEMP/i.test(what)) {
      await this.setting.temporary.dropAll();
    }
    if (what === 'ALL' || what === 'SEQUENCES') {
      this.setting.session.sequenceValues.forget();
    }
    if (what === 'ALL') {
      this.setting.portals.closeAll();
      this.setting.statements.closeAll();
      this.setting.settings.reset();
      this.setting.notifications.unlisten(null);
      // Restores the user who logged in, because a connection pool may reuse the connection.
      await this.become(null);
    }
    return `DISCARD ${what}`;
  }

  private set({ name, value, local }: Extract<SessionCommand, { kind: 'Set' }>): void {
    if (!this.isLocalOutside(local)) {
      this.setting.settings.set(name, value, local);
    }
  }

  private setTransaction(modes: TransactionModes, isDefault: boolean): void {
    const { settings, block } = this.setting;
    if (isDefault) {
      settings.setDefaults(modes);
    } else if (block.status === 'I') {
      this.warn('25P01', 'SET TRANSACTION can only be used in transaction blocks');
    } else {
      settings.setModes(modes);
    }
  }

  private async setRole(name: string | null, local: boolean): Promise<void> {
    if (this.isLocalOutside(local)) {
      return;
    }
    await this.become(name, local);
  }

  /** Returns whether SET LOCAL has no effect, and then warns. */
  private isLocalOutside(local: boolean): boolean {
    const isOutside = local && this.setting.block.status === 'I';
    if (isOutside) {
      this.warn('25P01', 'SET LOCAL can only be used in transaction blocks');
    }
    return isOutside;
  }

  /** A service account is the closest equivalent of a role. */
  private async become(name: string | null, local = false): Promise<void> {
    const { session, block } = this.setting;
    block.changeUser(local);
    if (name === null) {
      session.become(null);
    } else if (name !== session.principal.name) {
      const account = quoteName(name);
      const statement = await this.setting.prepare(`ASSUME SERVICE ACCOUNT ${account}`);
      await statement.execute([], { rows: { format: 'json' } });
      statement.close();
    }
  }

  /** Checks LOCK TABLE, which has no effect: statements never wait for each other's blocks. */
  private async lock(tables: readonly string[]): Promise<void> {
    this.setting.block.refuseOutside('LOCK TABLE');
    for (const table of tables) {
      const query = `SELECT count() FROM ${quoteName(table)}`;
      const statement = await this.setting.prepare(query).catch((error: unknown) => {
        throw inData(error);
      });
      statement.close();
    }
  }

  private deallocate(name: string | null): string {
    if (name === null) {
      this.setting.statements.closeAll();
      return 'DEALLOCATE ALL';
    }
    this.setting.statements.get(name);
    this.setting.statements.close(name);
    return 'DEALLOCATE';
  }

  private begin(modes: TransactionModes): void {
    if (!this.setting.block.begin(modes)) {
      this.warn('25001', 'there is already a transaction in progress');
      this.setting.settings.setModes(modes);
    }
  }

  private warn(sqlState: string, message: string): void {
    const fields = { severity: 'WARNING', sqlState, message } as const;
    this.setting.outlet.queue(reply.noticeResponse(fields));
  }

  private rollbackTo(savepoint: string): void {
    const open = this.setting.block.rollbackTo(savepoint);
    this.setting.portals.closeBut((name) => name === '' || open.has(name));
  }

  private rollback(): void {
    this.setting.portals.endBlock('rollback');
    this.setting.block.rollback();
  }
}

function unsupported(what: string): ProtocolError {
  return new ProtocolError('0A000', `not supported: ${what}`);
}
