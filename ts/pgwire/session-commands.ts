/** Carries out the statements of a session that the protocol answers itself. */
import type { PreparedStatement, Principal } from '../session/index.js';
import type { Block } from './block.js';
import { type SessionCommand, timeoutOf } from './commands.js';
import type { FetchCommand } from './cursor-commands.js';
import type { Portals } from './portals.js';
import { ProtocolError } from './protocol-error.js';
import * as reply from './server-messages.js';
import type { Statements } from './statements.js';

export interface ConversationLimits {
  /** Prepared statements, and portals, of one session. */
  readonly statementsMax: number;
  /** Sent in place of the server's own when the client asked for one. */
  readonly timeoutMs?: number | undefined;
}

/** What the commands work on. */
export interface CommandSetting {
  readonly block: Block;
  readonly portals: Portals;
  readonly statements: Statements;
  readonly outlet: { queue(bytes: Buffer): void };
  readonly limits: ConversationLimits;
  readonly session: {
    readonly principal: Principal;
    become(principal: Principal | null): void;
  };
  prepare(text: string): Promise<PreparedStatement>;
}

export class SessionCommands {
  /** Of the statements to come; undefined: the server's own. */
  timeoutMs: number | undefined;
  private readonly setting: CommandSetting;

  constructor(setting: CommandSetting) {
    this.setting = setting;
    this.timeoutMs = setting.limits.timeoutMs;
  }

  /** Returns the tag. */
  async apply(command: Exclude<SessionCommand, FetchCommand>): Promise<string> {
    switch (command.command) {
      case 'begin':
        this.begin();
        return 'BEGIN';
      case 'commit':
        this.setting.portals.endBlock(this.setting.block.status === 'E' ? 'rollback' : 'commit');
        return this.setting.block.commit();
      case 'rollback':
        this.rollback();
        return 'ROLLBACK';
      case 'savepoint':
        this.setting.block.savepoint(command.name, this.setting.portals.names);
        return 'SAVEPOINT';
      case 'release':
        this.setting.block.release(command.name);
        return 'RELEASE';
      case 'rollbackTo': {
        const open = this.setting.block.rollbackTo(command.name);
        this.setting.portals.closeBut((name) => name === '' || open.has(name));
        return 'ROLLBACK';
      }
      case 'unsupported':
        throw new ProtocolError('0A000', `not supported: ${command.what}`);
      case 'deallocate':
        return this.deallocate(command.name);
      case 'close':
        if (command.name === null) {
          this.setting.portals.closeAll();
        } else {
          this.setting.portals.get(command.name, 'cursor');
          this.setting.portals.close(command.name);
        }
        return command.name === null ? 'CLOSE CURSOR ALL' : 'CLOSE CURSOR';
      case 'discard':
        this.setting.portals.closeAll();
        this.setting.statements.closeAll();
        this.timeoutMs = this.setting.limits.timeoutMs;
        if (command.tag === 'DISCARD ALL') {
          // Whoever gets the connection from its pool next is whoever logged in.
          this.setting.session.become(null);
        }
        return command.tag;
      case 'ignore':
        return command.tag;
      case 'set':
        this.set(command.name, command.value);
        return 'SET';
      case 'role':
        await this.become(command.name);
        return command.tag;
      default:
        return assertNever(command);
    }
  }

  private set(name: string, value: string | null): void {
    if (name === 'application_name' && value !== null) {
      this.setting.outlet.queue(reply.parameterStatus('application_name', value));
    }
    if (name !== 'statement_timeout' || value === null) {
      return;
    }
    const timeout = timeoutOf(value);
    // Zero switches it off for PostgreSQL; here the server's own limit stays.
    this.timeoutMs = timeout === 0 ? this.setting.limits.timeoutMs : timeout;
  }

  /** A service account is what comes nearest to a role. */
  private async become(name: string | null): Promise<void> {
    const { session } = this.setting;
    if (name === null) {
      session.become(null);
    } else if (name !== session.principal.name) {
      const account = `"${name.replaceAll('"', '""')}"`;
      const statement = await this.setting.prepare(`ASSUME SERVICE ACCOUNT ${account}`);
      await statement.execute([], { rows: { format: 'json' } });
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

  private begin(): void {
    if (!this.setting.block.begin()) {
      const message = 'there is already a transaction in progress';
      const fields = { severity: 'WARNING', sqlState: '25001', message } as const;
      this.setting.outlet.queue(reply.noticeResponse(fields));
    }
  }

  private rollback(): void {
    this.setting.portals.endBlock('rollback');
    this.setting.block.rollback();
  }
}

function assertNever(value: never): never {
  throw new TypeError(`unexpected value ${JSON.stringify(value)}`);
}
