/** COPY over the connection: what one conversation copies in, and out. */
import type { ClientMessage } from './client-messages.js';
import { BoundValues } from './bound-values.js';
import { commandComplete, copyDone, copyResponse } from './server-messages.js';
import type { CopyCommand } from './copy-command.js';
import { CopyIn, type CopySetting } from './copy-in.js';
import { CopyRows } from './copy-rows.js';
import { inData, shifted } from './failure.js';
import { Portal, type PortalRun, type Send } from './portal.js';
import { ProtocolError } from './protocol-error.js';

export interface CopiesSetting extends CopySetting {
  readonly outlet: { queue(bytes: Buffer): void; readonly send: Send };
  /** Runs a portal so that it can be cancelled. */
  run(portal: Portal, maxRows: number, send: Send): Promise<PortalRun>;
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

  /** TO STDOUT runs to its end; FROM STDIN asks for the data. */
  async start(command: CopyCommand): Promise<void> {
    if (command.direction === 'out') {
      await this.copyOut(command);
      return;
    }
    this.open = await CopyIn.open(command, this.setting);
    this.setting.outlet.queue(this.open.response);
  }

  /** A message while data is expected. An error leaves the COPY to be abandoned. */
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
        // Drivers send Sync right after Execute, before they know that data is asked for.
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

  /** Ends the COPY without a trace. */
  abandon(): void {
    this.open?.abandon();
    this.open = null;
  }

  private async copyOut(command: Extract<CopyCommand, { direction: 'out' }>): Promise<void> {
    const { outlet } = this.setting;
    const statement = await this.setting.prepare(command.query).catch((error: unknown) => {
      throw command.start < 0 ? inData(error) : shifted(error, command.start);
    });
    try {
      const { kind, columns, parameters } = statement.description;
      if (kind !== 'select' || columns.length === 0) {
        throw new ProtocolError('42601', 'COPY … TO STDOUT must be of a query');
      }
      if (parameters.length > 0) {
        throw new ProtocolError('42P02', 'the query of COPY takes no parameters');
      }
      const format = command.options.format === 'binary' ? 1 : 0;
      const formats = columns.map((): number => format);
      const rows = new CopyRows(columns, command.options);
      outlet.queue(copyResponse('out', format, columns.length));
      outlet.queue(rows.head());
      const portal = new Portal(statement, BoundValues.of([]), formats);
      const run = await this.setting.run(portal, 0, (bytes) => outlet.send(rows.rows(bytes)));
      outlet.queue(rows.tail());
      outlet.queue(copyDone());
      outlet.queue(commandComplete(`COPY ${run.rows}`));
    } finally {
      statement.close();
    }
  }
}
