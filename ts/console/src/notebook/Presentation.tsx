/** Presents a notebook: titled charts that fill the screen, without controls. */
import '../styles/presentation.css';
import { createMemo, createSignal, For, onCleanup, onMount, Show, type JSX } from 'solid-js';
import { onlyReads } from '../sql/effects.js';
import { arrange, presentedCells, titleOf, type Arrangement } from '../cells/arrangement.js';
import { CellResult } from './CellResult.js';
import type { SqlCell } from '../cells/model.js';
import { RefreshStatus } from './NotebookBar.js';
import type { NotebookContext } from './context.js';
import { texts } from '../texts.js';

/** Idle time before the pointer is hidden. */
const POINTER_MS = 2000;

export function Presentation(props: NotebookContext): JSX.Element {
  const [screen, setScreen] = createSignal({ width: innerWidth, height: innerHeight });
  const measure = (): void => void setScreen({ width: innerWidth, height: innerHeight });
  const shown = createMemo(() => presentedCells(props.document.notebook()));
  const isStill = isStillSignal();
  const arrangement = createMemo(() => arrange(shown(), screen()));
  const isApproved = (): boolean => props.tab.notebook?.approved === true;
  const run = async (): Promise<void> => {
    props.workspace.approveNotebook(props.tab.id);
    for (const { id, text } of shown()) {
      if (props.document.run(id).runner.result() === undefined && onlyReads(text)) {
        await props.document.runCell(id);
      }
    }
  };
  onMount(() => {
    addEventListener('resize', measure);
    onCleanup(() => removeEventListener('resize', measure));
    if (isApproved()) {
      void run();
    }
  });
  return (
    <div class="presentation" classList={{ still: isStill() }}>
      <header class="presentation-head">
        <h2>
          <bdi>{props.tab.title}</bdi>
        </h2>
        <For each={props.document.notebook().variables}>
          {({ name, value }) => (
            <span class="presentation-fact">
              {name} <bdi>{value}</bdi>
            </span>
          )}
        </For>
        <span class="spring" />
        <Show when={!isApproved()}>
          <span>{texts.notebook.createdElsewhereShort}</span>
          <button class="button primary" onClick={() => void run()}>
            {texts.common.run}
          </button>
        </Show>
        <RefreshStatus {...props} />
      </header>
      <div
        class="presentation-cells"
        style={{ 'grid-template-columns': `repeat(${arrangement().tracks}, minmax(0, 1fr))` }}
      >
        <For each={shown().map(({ id }) => id)}>
          {(id) => (
            <Show when={shown().find((cell) => cell.id === id)}>
              {(cell) => <PresentedCell {...props} cell={cell()} arrangement={arrangement()} />}
            </Show>
          )}
        </For>
      </div>
      <Show when={shown().length === 0}>
        <p class="empty">{texts.notebook.nothingToPresent}</p>
      </Show>
    </div>
  );
}

/** Tracks whether the pointer has been idle for `POINTER_MS`. */
function isStillSignal(): () => boolean {
  const [isStill, setStill] = createSignal(false);
  onMount(() => {
    let timer = setTimeout(() => setStill(true), POINTER_MS);
    const moved = (): void => {
      setStill(false);
      clearTimeout(timer);
      timer = setTimeout(() => setStill(true), POINTER_MS);
    };
    addEventListener('pointermove', moved);
    onCleanup(() => {
      clearTimeout(timer);
      removeEventListener('pointermove', moved);
    });
  });
  return isStill;
}

function PresentedCell(
  props: NotebookContext & { readonly cell: SqlCell; readonly arrangement: Arrangement },
): JSX.Element {
  let host!: HTMLElement;
  const { id } = props.cell;
  const run = props.document.run(id);
  const title = (): string => titleOf(props.cell, run.runner.result()?.columns);
  const placement = (): Arrangement['cells'][number] | undefined =>
    props.arrangement.cells.find((one) => one.id === id);
  onMount(() => onCleanup(props.refresher.watch(id, host)));
  return (
    <article
      ref={host}
      class="presented"
      aria-label={title()}
      style={{
        'grid-column': `span ${placement()?.width ?? 1}`,
        'grid-row': `span ${placement()?.height ?? 1}`,
      }}
    >
      <h3>
        <bdi>{title()}</bdi>
      </h3>
      <CellResult {...props} run={run} />
    </article>
  );
}
