/** Report on a completed import: rows, duration, and the unreadable values of each column. */
import { createMemo, For, Show, type JSX } from 'solid-js';
import type { ImportReport } from '../api/upload.js';
import { countText, duration, grouped, rowsText } from '../model/format.js';
import { quoted } from '../sql/names.js';
import { Icon } from '../ui/icons.js';
import { openPage } from '../page/pages.js';
import { BadLines } from './BadLines.js';
import { badLineOf, type BadLine, type FileLine } from './lines.js';
import type { ImportFile, ImportQueue } from './queue.js';
import type { Statements } from '../state/statements.js';
import { Listing } from '../ui/Listing.js';
import { fill, fillNodes } from '../fill.js';
import { texts } from '../texts.js';

const PREVIEW_ROWS = 1000;

interface ReportProps {
  readonly statements: Statements;
  readonly file: ImportFile;
  readonly queue: ImportQueue;
}

export function FileReport(props: ReportProps): JSX.Element {
  const report = createMemo(() => props.file.report);
  const table = (): string => report()?.location ?? '';
  const spoilt = createMemo(() => report()?.columns.filter(({ errors }) => errors > 0) ?? []);
  const bad = createMemo(() => (report()?.badLines ?? []).flatMap((text) => badLineOf(text) ?? []));
  /** Finds the malformed lines of a column. The chosen columns have the order of the file. */
  const badOf = (name: string): BadLine[] =>
    bad().filter(({ field = 0 }) => {
      const chosen = props.file.choices?.columns[field - 1]?.name ?? '';
      return chosen.trim().toLowerCase() === name.toLowerCase();
    });
  const badRows = (): BadLine[] => bad().filter(({ field }) => field === undefined);
  const read = (lines: readonly BadLine[]): Promise<FileLine[]> =>
    props.queue.linesOf(props.file.id, lines);
  const rows = (): string => rowsText(report()?.rowsImported ?? 0);
  const speed = (): string => speedText(report()?.rowsImported ?? 0, props.file.durationMs ?? 0);
  return (
    <div class="import-report">
      <h2>
        <Icon name="check" class="ok" />
        {fillNodes(texts.importReport.wasImported, { name: <bdi>{props.file.name}</bdi> })}
      </h2>
      <p>
        {fillNodes(texts.importReport.rowsInto, {
          rows: rows(),
          table: <bdi class="data">{table()}</bdi>,
          speed: speed(),
        })}
      </p>
      <Show when={(report()?.rowsRejected ?? 0) > 0}>
        <p class="warn">
          <Icon name="alert" />
          {countText(report()?.rowsRejected ?? 0, texts.importReport.skipped)}
        </p>
        <Show when={badRows().length > 0}>
          <div>
            <BadLines
              lines={badRows()}
              count={report()?.rowsRejected ?? 0}
              what={texts.importReport.skippedRows}
              read={read}
            />
          </div>
        </Show>
      </Show>
      <For each={report()?.warnings}>{(warning) => <p class="hint">{warning}</p>}</For>
      <Show when={spoilt().length > 0}>
        <SpoiltColumns spoilt={spoilt()} badOf={badOf} read={read} />
      </Show>
      <p class="import-next">
        <button
          class="button primary"
          onClick={() =>
            props.statements.preview(`SELECT * FROM ${quoted(table())} LIMIT ${PREVIEW_ROWS}`)
          }
        >
          <Icon name="play" />
          {texts.importReport.showRows}
        </button>
        <button class="button" onClick={() => openPage('tables', table())}>
          {texts.importReport.openTableDetails}
        </button>
        <button class="button" onClick={() => props.queue.remove(props.file.id)}>
          {texts.common.removeFromList}
        </button>
      </p>
    </div>
  );
}

interface SpoiltProps {
  readonly spoilt: ImportReport['columns'];
  readonly badOf: (column: string) => BadLine[];
  readonly read: (lines: readonly BadLine[]) => Promise<FileLine[]>;
}

function SpoiltColumns(props: SpoiltProps): JSX.Element {
  return (
    <Listing
      caption={texts.common.unreadableValues}
      heads={[
        [texts.common.column],
        [texts.importReport.values, 'num'],
        [texts.importReport.lines],
      ]}
      rows={props.spoilt}
    >
      {(column) => (
        <tr>
          <th scope="row" class="data">
            <bdi>{column.name}</bdi>
          </th>
          <td class="data num">{grouped(String(column.errors))}</td>
          <td>
            <BadLines
              lines={props.badOf(column.name)}
              count={column.errors}
              what={column.name}
              read={props.read}
            />
          </td>
        </tr>
      )}
    </Listing>
  );
}

function speedText(rows: number, ms: number): string {
  const rate = Math.round((rows * 1000) / Math.max(1, ms));
  return fill(texts.importReport.speed, { duration: duration(ms), rate: grouped(String(rate)) });
}
