/** COPY between the server and the client, in both directions. */
import { type CopyStream, quoteName } from '../../session/index.js';
import type { ClientMessage } from '../protocol/client-messages.js';
import { BoundValues } from '../statements/bound-values.js';
import { commandComplete, copyDone, copyResponse } from '../protocol/server-messages.js';
import { CopyIn, type CopySetting } from './copy-in.js';
import { copyOptions } from './copy-options.js';
import { CopyRows } from './copy-rows.js';
import { inData, shifted } from '../protocol/failure.js';
import { type Executable, Portal, type PortalRun, type Send } from '../statements/portal.js';
import { ProtocolError } from '../protocol/protocol-error.js';

interface CopiesSetting extends CopySetting {
  readonly outlet: { queue(bytes: Buffer): void; readonly send: Send };
  /** Runs a portal, so that it can be cancelled while it runs. */
  run(portal: Portal, maxRows: number, send: Send): Promise<PortalRun>;
  /** Throws if the statement writes in a read-only transaction. */
  refuseWrite(statement: Executable): void;
}

export class Copies {
  private readonly setting: CopiesSetting;
  private open: CopyIn | null = null;

  constructor(setting: CopiesSetting) {
    this.setting = setting;
  }

  /** Whether the client is sending data. */
  get isOpen(): boolean {
    return this.open !== null;
  }

  /** Starts a COPY: TO STDOUT runs to completion, FROM STDIN requests the data. */
  async start(statement: CopyStream): Promise<void> {
    if (statement.kind === 'CopyOut') {
      await this.copyOut(statement);
      return;
    }
    this.open = await CopyIn.open(statement, this.setting);
    this.setting.outlet.queue(this.open.response);
  }

  /** Handles a message while data is expected. After an error, the caller must abandon the COPY. */
  async handle(message: ClientMessage): Promise<void> {
    const { open } = this;
    switch (message.kind) {
      case 'copyData':
        await open?.feed(message.bytes);
        break;
      case 'copyDone': {
        const rows = await open?.finish();
        this.open = null;
        this.setting.outlet.queue(commandComplete(`COPY ${rows ?? 0}`));
        break;
      }
      case 'copyFail':
        throw new ProtocolError('57014', `COPY from stdin failed: ${message.reason}`);
      case 'flush':
      case 'sync':
        // Sync is ignored, because drivers send it directly after Execute, before they know that
        // COPY needs data.
        break;
      default: {
        const found = `unexpected message "${message.kind}" during COPY from stdin`;
        throw new ProtocolError('08P01', found);
      }
    }
  }

  cancel(): void {
    this.open?.cancel();
  }

  /**
   * Ends the COPY and discards its data. Once this resolves, none of the data can become visible.
   */
  async abandon(): Promise<void> {
    const { open } = this;
    this.open = null;
    await open?.abandon();
  }

  private async copyOut(copy: Extract<CopyStream, { kind: 'CopyOut' }>): Promise<void> {
    const { outlet } = this.setting;
    const options = copyOptions(copy.options);
    if (options.encoding !== 'utf-8') {
      throw new ProtocolError('0A000', `COPY … TO STDOUT supports UTF8, not ${options.encoding}`);
    }
    const { text, start } = queryOf(copy);
    const statement = await this.setting.prepare(text).catch((error: unknown) => {
      throw start < 0 ? inData(error) : shifted(error, start);
    });
    try {
      const { kind, columns, parameters } = statement.description;
      if (kind !== 'select' || columns.length === 0) {
        throw new ProtocolError('42601', 'COPY … TO STDOUT requires a query that returns rows');
      }
      this.setting.refuseWrite(statement);
      if (parameters.length > 0) {
        throw new ProtocolError('42P02', 'COPY does not support parameters; use literal values');
      }
      const format = options.format === 'binary' ? 1 : 0;
      const formats = columns.map((): number => format);
      const rows = new CopyRows(columns, options);
      outlet.queue(copyResponse('out', format, columns.length));
      outlet.queue(rows.head());
      const portal = new Portal(statement, BoundValues.none, formats);
      // Values are sent with full precision, so that they can be copied back unchanged.
      portal.exact = true;
      const run = await this.setting.run(portal, 0, (bytes) => outlet.send(rows.rows(bytes)));
      outlet.queue(rows.tail());
      outlet.queue(copyDone());
      outlet.queue(commandComplete(`COPY ${run.rows}`));
    } finally {
      statement.close();
    }
  }
}

/**
 * Returns the query whose rows are copied. `start` is -1 if the query does not occur in the SQL
 * text.
 */
function queryOf({ source }: Extract<CopyStream, { kind: 'CopyOut' }>): {
  readonly text: string;
  readonly start: number;
} {
  if ('text' in source) {
    return source;
  }
  const columns = source.columns?.map(quoteName).join(', ') ?? '*';
  return { text: `SELECT ${columns} FROM ${quoteName(source.table)}`, start: -1 };
}
