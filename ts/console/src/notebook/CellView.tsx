/** Shows one cell: a header with the cell's actions, the cell's text and its result. */
import { createSignal, Match, onCleanup, onMount, Show, Switch, type JSX } from 'solid-js';
import { Icon } from '../ui/icons.js';
import { openMenuBelow } from '../ui/Menu.js';
import { rowsText } from '../model/format.js';
import { runTitle } from '../state/run.js';
import { cellMenu } from './cell-menu.js';
import type { CellRun } from './cell-run.js';
import { CellResult } from './CellResult.js';
import { titleOf } from '../cells/arrangement.js';
import { MAX_TITLE_LENGTH, nameTrouble, type SqlCell } from '../cells/model.js';
import { MarkdownBody } from './markdown/MarkdownBody.js';
import type { CellProps } from './context.js';
import { Resizer } from './Resizer.js';
import { shownSize } from '../cells/sizes.js';
import { SqlBody } from './SqlBody.js';
import { IconButton } from '../ui/IconButton.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

const CELL_TYPE = 'application/x-tidemark-cell';

export function CellView(props: CellProps): JSX.Element {
  let host!: HTMLElement;
  const [over, setOver] = createSignal(false);
  const isGrid = (): boolean => props.document.notebook().layout === 'grid';
  const size = (): { width: number; height: number } => shownSize(props.cell);
  onMount(() => {
    const { id } = props.cell;
    onCleanup(props.refresher.watch(id, host));
  });
  const drop = (event: DragEvent): void => {
    setOver(false);
    const dragged = event.dataTransfer?.getData(CELL_TYPE);
    if (dragged) {
      event.preventDefault();
      const { cells } = props.document.notebook();
      const to = cells.findIndex(({ id }) => id === props.cell.id);
      props.document.change({ kind: 'move', id: dragged, to });
    }
  };
  return (
    <article
      ref={host}
      class="cell"
      classList={{ 'drop-here': over(), maximised: props.maximised() === props.cell.id }}
      data-cell={props.cell.id}
      data-kind={props.cell.kind}
      aria-label={
        props.cell.kind === 'sql'
          ? fill(texts.common.cell, { name: props.cell.name })
          : texts.common.text
      }
      style={{
        'grid-column': isGrid() ? `span ${size().width}` : undefined,
        'grid-row': isGrid() ? `span ${size().height}` : undefined,
      }}
      onDragOver={(event) => {
        if (event.dataTransfer?.types.includes(CELL_TYPE)) {
          event.preventDefault();
          setOver(true);
        }
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <Switch>
        <Match when={props.cell.kind === 'sql' && props.cell}>
          {(cell) => <SqlCellView {...props} cell={cell()} />}
        </Match>
        <Match when={props.cell.kind === 'markdown' && props.cell}>
          {(cell) => (
            <MarkdownBody {...props} cell={cell()}>
              <DragHandle {...props} />
              <CellTools {...props} />
            </MarkdownBody>
          )}
        </Match>
      </Switch>
      <Show when={isGrid() && props.maximised() === undefined}>
        <Resizer {...props} host={() => host} />
      </Show>
    </article>
  );
}

function SqlCellView(props: CellProps<SqlCell>): JSX.Element {
  const run = (): CellRun => props.document.run(props.cell.id);
  return (
    <>
      <header class="cell-head">
        <DragHandle {...props} />
        <RunButton {...props} run={run()} />
        <CellTitle {...props} run={run()} />
        <CellName {...props} />
        <Summary run={run()} text={props.cell.text} />
        <span class="spring" />
        <span
          class="segmented"
          role="group"
          aria-label={fill(texts.cells.viewOf, { name: props.cell.name })}
        >
          {(['grid', 'chart'] as const).map((view) => (
            <button
              aria-pressed={props.cell.view === view ? 'true' : 'false'}
              onClick={() => {
                props.document.change({ kind: 'change', id: props.cell.id, patch: { view } });
                props.refresher.shownAs(props.cell.id);
              }}
            >
              {view === 'grid' ? texts.common.grid : texts.common.chart}
            </button>
          ))}
        </span>
        <CellTools {...props} />
      </header>
      <Show when={props.cell.folded !== true}>
        <SqlBody {...props} />
      </Show>
      <CellResult {...props} run={run()} />
    </>
  );
}

function DragHandle(props: CellProps): JSX.Element {
  return (
    <IconButton
      icon="drag"
      label={texts.cells.moveCell}
      title={texts.cells.moveHint}
      draggable={true}
      onDragStart={(event) => event.dataTransfer?.setData(CELL_TYPE, props.cell.id)}
      class="icon-button tight cell-drag"
    />
  );
}

function RunButton(props: CellProps<SqlCell> & { run: CellRun }): JSX.Element {
  const isRunning = (): boolean => props.run.runner.run()?.state === 'running';
  return (
    <IconButton
      icon={isRunning() ? 'stop' : 'play'}
      label={
        isRunning()
          ? fill(texts.cells.stop, { name: props.cell.name })
          : fill(texts.cells.runCell, { name: props.cell.name })
      }
      title={isRunning() ? texts.cells.stopHint : texts.cells.runHint}
      onClick={() =>
        isRunning() ? props.run.runner.cancel() : void props.document.runCell(props.cell.id)
      }
      class="icon-button tight cell-play"
    />
  );
}

/** Input for the cell's title in presentations. */
function CellTitle(props: CellProps<SqlCell> & { run: CellRun }): JSX.Element {
  const change = (input: HTMLInputElement): void => {
    const title = input.value.trim().slice(0, MAX_TITLE_LENGTH) || undefined;
    input.value = title ?? '';
    props.document.change({ kind: 'change', id: props.cell.id, patch: { title } });
  };
  const usual = (): string => {
    const { name, text } = props.cell;
    return titleOf({ name, text }, props.run.runner.result()?.columns);
  };
  return (
    <input
      class="cell-title"
      aria-label={texts.cells.title}
      title={texts.cells.titleHint}
      maxlength={MAX_TITLE_LENGTH}
      placeholder={usual()}
      value={props.cell.title ?? ''}
      onChange={(event) => change(event.currentTarget)}
    />
  );
}

/** Input for the cell's name, by which statements refer to the cell. */
function CellName(props: CellProps<SqlCell>): JSX.Element {
  const [trouble, setTrouble] = createSignal<string>();
  const rename = (input: HTMLInputElement): void => {
    const name = input.value.trim();
    const found = nameTrouble(props.document.notebook(), props.cell.id, name);
    setTrouble(found);
    if (found === undefined && name !== props.cell.name) {
      props.document.change({ kind: 'change', id: props.cell.id, patch: { name } });
    } else if (found !== undefined) {
      input.value = props.cell.name;
    }
  };
  return (
    <>
      <input
        class="cell-name"
        aria-label={texts.cells.name}
        title={texts.cells.nameHint}
        spellcheck={false}
        size={Math.max(6, props.cell.name.length)}
        value={props.cell.name}
        onChange={(event) => rename(event.currentTarget)}
        onInput={() => setTrouble(undefined)}
      />
      <Show when={trouble()}>
        <span class="cell-warning" role="alert">
          {trouble()}
        </span>
      </Show>
    </>
  );
}

function Summary(props: { run: CellRun; text: string }): JSX.Element {
  const facts = (): string => {
    const run = props.run.runner.run();
    void props.run.revision();
    const result = props.run.runner.result();
    const isRefreshed = run?.state === 'done' && result && run.hasRows;
    if (!run || props.run.trouble()) {
      return '';
    }
    if (run.state === 'failed') {
      return texts.common.failed;
    }
    const left = result?.isCut === true || (result?.total ?? 0) > (result?.rows.length ?? 0);
    if (isRefreshed && !left) {
      return rowsText(result.rows.length);
    }
    if (isRefreshed && result.isCut) {
      return fill(texts.common.firstRows, { rows: rowsText(result.rows.length) });
    }
    return isRefreshed
      ? fill(texts.common.countOfAll, {
          count: result.rows.length.toLocaleString('en'),
          all: rowsText(result.total ?? 0),
        })
      : runTitle(run);
  };
  return (
    <span class="cell-summary" data-state={props.run.runner.run()?.state}>
      <Show when={props.run.runner.run()?.state === 'running'}>
        <Icon name="running" class="spin accent" />
      </Show>
      <span>{facts()}</span>
      <Show when={props.run.runner.run() && props.run.text() !== props.text}>
        <span class="hint">{texts.cells.edited}</span>
      </Show>
    </span>
  );
}

function CellTools(props: CellProps): JSX.Element {
  const isMaximised = (): boolean => props.maximised() === props.cell.id;
  return (
    <span class="cell-tools">
      <IconButton
        icon="expand"
        label={isMaximised() ? texts.cells.showAllCells : texts.cells.maximise}
        title={isMaximised() ? texts.cells.showAllCellsHint : texts.cells.maximise}
        aria-pressed={isMaximised() ? 'true' : 'false'}
        onClick={() => props.maximise(isMaximised() ? undefined : props.cell.id)}
        class="icon-button tight"
      />
      <IconButton
        icon="more"
        label={texts.cells.moreCellActions}
        aria-haspopup="menu"
        onClick={(event) => openMenuBelow(texts.cells.cell, event.currentTarget, cellMenu(props))}
        class="icon-button tight"
      />
    </span>
  );
}
