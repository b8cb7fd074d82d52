/** Annotations of a time chart. Each row of the annotation query is an event. */
import { createEffect, createSignal, on, onCleanup, type Accessor } from 'solid-js';
import type { Column, Row } from '../api/answer.js';
import { aborted, query } from '../api/client.js';
import { copyText } from '../model/format.js';
import { familyOf } from '../model/types.js';
import type { Annotation } from './plot/draw.js';
import { milliseconds } from './model.js';
import { messageOf } from '../model/message.js';
import { texts } from '../texts.js';

const MAX_ANNOTATIONS = 500;
/**
 * Minimum interval between runs of the same annotation query, even if the chart changes more often.
 */
const MIN_INTERVAL_MS = 30_000;

interface Rows {
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
}

/** Runs an annotation query and returns its rows. */
export type Annotate = (text: string, signal: AbortSignal) => Promise<Rows>;

/** Runs an annotation query exactly as written. */
export async function annotate(text: string, signal: AbortSignal): Promise<Rows> {
  const { onlyReads } = await import('../sql/effects.js');
  if (!onlyReads(text)) {
    throw new Error(texts.chart.annotationsOnlyRead);
  }
  const { head, rows } = await query(text, { maxRows: MAX_ANNOTATIONS, signal });
  return { columns: head.columns, rows };
}

/**
 * Converts rows to events. The first time column is the start of an event, the second its end, and
 * the first string column its label.
 */
export function annotationsOf({ columns, rows }: Rows): readonly Annotation[] {
  const times = columns.flatMap(({ type }, at) => (familyOf(type) === 'time' ? [at] : []));
  const [begin, end] = times;
  const text = columns.findIndex(({ type }) => ['symbol', 'text'].includes(familyOf(type)));
  if (begin === undefined) {
    throw new Error(texts.chart.annotationsWithoutTime);
  }
  return rows.flatMap((row): readonly Annotation[] => {
    const at = milliseconds(row[begin] ?? null);
    const to = end === undefined ? undefined : milliseconds(row[end] ?? null);
    const what = row[text] ?? null;
    return at === undefined
      ? []
      : [{ at, ...(to === undefined ? {} : { to }), text: what === null ? '' : copyText(what) }];
  });
}

interface AnnotationSource {
  /** The annotation query, or `undefined` if the chart has none. */
  readonly text: Accessor<string | undefined>;
  /** A value that changes whenever the chart's rows change. */
  readonly revision: Accessor<unknown>;
  readonly annotate: Annotate;
}

/** Loads the annotations of a chart, and reloads them when the query or the rows change. */
export function followAnnotations({ text, revision, annotate: load }: AnnotationSource): {
  readonly annotations: Accessor<readonly Annotation[]>;
  readonly failure: Accessor<string>;
} {
  const [annotations, setAnnotations] = createSignal<readonly Annotation[]>([]);
  const [failure, setFailure] = createSignal('');
  let abort: AbortController | undefined;
  let [requestedText, requestedAt] = ['', 0];
  createEffect(
    on([text, revision], ([current]) => {
      const isSame = current === requestedText && Date.now() - requestedAt < MIN_INTERVAL_MS;
      if (isSame) {
        return;
      }
      abort?.abort();
      [requestedText, requestedAt] = [current ?? '', Date.now()];
      if (current === undefined) {
        setAnnotations([]);
        setFailure('');
        return;
      }
      const mine = (abort = new AbortController());
      const request = Promise.resolve().then(() => load(current, mine.signal));
      request.then(
        (rows) => {
          if (!mine.signal.aborted) {
            take(rows);
          }
        },
        (cause: unknown) => {
          if (!aborted(cause) && !mine.signal.aborted) {
            setFailure(messageOf(cause));
          }
        },
      );
    }),
  );
  const take = (rows: Rows): void => {
    try {
      setAnnotations(annotationsOf(rows));
      setFailure('');
    } catch (cause) {
      setFailure(messageOf(cause));
    }
  };
  onCleanup(() => abort?.abort());
  return { annotations, failure };
}
