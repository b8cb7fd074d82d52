/** Selects the time range that the cells share: a predefined range, or a custom start and end. */
import { createSignal, For, Show, type JSX } from 'solid-js';
import type { NotebookContext } from './context.js';
import { timeOf, USUAL_RANGES } from '../cells/times.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

const NONE = 'none';
const OWN = 'own';

export function RangeChoice(props: NotebookContext): JSX.Element {
  const [writing, setWriting] = createSignal(false);
  const range = (): { from: string; to: string } | undefined => props.document.notebook().range;
  const usual = (): string | undefined =>
    USUAL_RANGES.find(([, from, to]) => range()?.from === from && range()?.to === to)?.[0];
  const isOwn = (): boolean => writing() || (range() !== undefined && usual() === undefined);
  const choose = (value: string): void => {
    setWriting(value === OWN);
    const found = USUAL_RANGES.find(([name]) => name === value);
    if (found) {
      props.refresher.choose({ from: found[1], to: found[2] });
    } else if (value === NONE) {
      props.refresher.choose(undefined);
    }
  };
  return (
    <>
      <select
        class="select"
        aria-label={texts.common.timeRange}
        title={texts.ranges.hint}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        <option value={NONE} selected={range() === undefined && !writing()}>
          {texts.ranges.allTimes}
        </option>
        <For each={USUAL_RANGES}>
          {([name]) => (
            <option value={name} selected={!isOwn() && usual() === name}>
              {name}
            </option>
          )}
        </For>
        <option value={OWN} selected={isOwn()}>
          {texts.ranges.customRange}
        </option>
      </select>
      <Show when={isOwn()}>
        <Ends {...props} />
      </Show>
      <Show when={props.refresher.isZoomed()}>
        <button class="button small" onClick={() => props.refresher.zoom(undefined)}>
          {texts.common.resetZoom}
        </button>
      </Show>
    </>
  );
}

function Ends(props: NotebookContext): JSX.Element {
  let from!: HTMLInputElement;
  let to!: HTMLInputElement;
  const [trouble, setTrouble] = createSignal('');
  const range = (): { from: string; to: string } =>
    props.document.notebook().range ?? { from: 'now-1h', to: 'now' };
  const take = (): void => {
    const now = Date.now();
    const [first, last] = [timeOf(from.value, now), timeOf(to.value, now)];
    if (first === undefined || last === undefined) {
      const wrong = first === undefined ? from.value : to.value;
      setTrouble(fill(texts.ranges.notATime, { value: wrong }));
    } else if (first >= last) {
      setTrouble(texts.ranges.endsBeforeBegin);
    } else {
      setTrouble('');
      props.refresher.choose({ from: from.value.trim(), to: to.value.trim() });
    }
  };
  return (
    <span class="range-ends" role="group" aria-label={texts.ranges.customRangeLabel}>
      <input
        ref={from}
        class="input data"
        aria-label={texts.common.from}
        value={range().from}
        onChange={take}
      />
      <span aria-hidden="true">{texts.ranges.until}</span>
      <input
        ref={to}
        class="input data"
        aria-label={texts.common.to}
        value={range().to}
        onChange={take}
      />
      <Show when={trouble()}>
        <span class="cell-warning" role="alert">
          {trouble()}
        </span>
      </Show>
    </span>
  );
}
