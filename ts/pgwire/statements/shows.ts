/** SHOW of a setting that the session stores: it runs as a query for the setting's value. */
import type { ParsedStatement, PreparedStatement } from '../../session/index.js';
import { BoundValues } from './bound-values.js';
import { Portal } from './portal.js';
import type { SessionSettings } from './session-settings.js';

/** The conversation interface that SHOW needs. */
interface ShowSetting {
  readonly settings: SessionSettings;
  readonly session: { read(text: string): ParsedStatement };
  prepare(text: ParsedStatement): Promise<PreparedStatement>;
  /** Runs a portal and sends its result; returns true when all rows have been sent. */
  runPortal(portal: Portal, maxRows: number): Promise<boolean>;
}

export class Shows {
  private readonly setting: ShowSetting;

  constructor(setting: ShowSetting) {
    this.setting = setting;
  }

  /** Replaces SHOW with a query for the current value; returns any other statement unchanged. */
  withValue(read: ParsedStatement): ParsedStatement {
    return this.query(read.shows) ?? read;
  }

  /**
   * Runs a prepared SHOW with the setting's current value, which may have changed since Parse.
   * Returns false for any other statement.
   */
  async run({ statement, formats }: Portal): Promise<boolean> {
    const query = this.query(statement.shows);
    if (query === null) {
      return false;
    }
    const prepared = await this.setting.prepare(query);
    try {
      await this.setting.runPortal(new Portal(prepared, BoundValues.none, formats), 0);
    } finally {
      prepared.close();
    }
    return true;
  }

  private query(shows: string | null): ParsedStatement | null {
    const { settings, session } = this.setting;
    const value = shows === null ? null : settings.valueQuery(shows);
    return value === null ? null : { ...session.read(value), shows };
  }
}
