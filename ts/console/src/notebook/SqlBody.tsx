/** Shows the statement of a cell in an editor, which is created when the cell becomes visible. */
import { createEffect, createSignal, on, onCleanup, onMount, Show, type JSX } from 'solid-js';
import type { SqlEditor } from '../editor/editor.js';
import type { CellProps } from './context.js';
import type { SqlCell } from '../cells/model.js';
import { nameSource } from '../editor/events.js';

const LINE_PX = 20;
const MAX_LINES = 16;
const AROUND_PX = 18;
/** Distance from the visible area within which a cell's editor is created. */
const NEAR = '400px';

export function SqlBody(props: CellProps<SqlCell>): JSX.Element {
  let host!: HTMLDivElement;
  let editor: SqlEditor | undefined;
  const [ready, setReady] = createSignal(false);
  const { cell, schema, document: doc } = props;
  const lines = (): number => Math.min(MAX_LINES, Math.max(2, props.cell.text.split('\n').length));

  const begin = async (): Promise<void> => {
    const { SqlEditor } = await import('../editor/editor.js');
    if (!host.isConnected || editor) {
      return;
    }
    editor = new SqlEditor(host, {
      names: nameSource(schema),
      changed: (_tab, text) => doc.type(cell.id, text),
      run: () => void doc.runCell(cell.id),
      runAll: () => void doc.runFrom(),
      // Only the console knows the names of other cells and variables, so the server cannot
      // validate the statement. Errors are reported when the cell runs.
      validate: () => Promise.resolve(undefined),
      problem: () => undefined,
      statement: () => undefined,
    });
    editor.show(cell.id, props.cell.text);
    setReady(true);
  };
  onMount(() => {
    const observer = new IntersectionObserver(
      ([entry]) => {
        if (entry?.isIntersecting === true) {
          observer.disconnect();
          void begin();
        }
      },
      { rootMargin: NEAR },
    );
    observer.observe(host);
    onCleanup(() => {
      observer.disconnect();
      editor?.destroy();
      editor = undefined;
    });
  });
  // Updates the editor if an undo step or another window changed the text.
  createEffect(
    on(
      () => props.cell.text,
      (text) => editor?.rewrite(cell.id, text),
      { defer: true },
    ),
  );
  createEffect(() => {
    const run = doc.run(cell.id).runner.run();
    if (run && ready()) {
      editor?.clearProblem(cell.id);
      const offset = run.failure?.offset;
      if (offset !== undefined) {
        editor?.showProblem(cell.id, offset, run.failure?.message ?? '');
      }
    }
  });
  return (
    <div class="cell-sql" style={{ height: `${lines() * LINE_PX + AROUND_PX}px` }}>
      <div class="editor-host" classList={{ ready: ready() }} ref={host} />
      <Show when={!ready()}>
        <pre class="cell-sql-text">{props.cell.text}</pre>
      </Show>
    </div>
  );
}
