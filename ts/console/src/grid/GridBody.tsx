/** The rows and cells in view: one effect fills them, whatever changed. */
import { createEffect, createMemo, onMount, untrack, type JSX } from 'solid-js';
import { BodyView } from './body-view.js';
import { cellAt, type GridParts } from './parts.js';

export function GridBody(props: GridParts): JSX.Element {
  let host!: HTMLDivElement;
  const edition = createMemo((): object => {
    const { result, revision, order, zone, layout } = props;
    return { result, revision, order, zone, arrangement: layout.arrangement() };
  });
  onMount(() => {
    const view = new BodyView(host);
    createEffect(() => {
      const { layout, cell } = props;
      const now = { rows: layout.rows(), columns: layout.columns(), edition: edition() };
      // What is read for each of the cells follows from these.
      untrack(() => view.show({ ...now, shown: props, layout, cell }));
    });
  });
  const select = (event: Event): void => {
    const place = cellAt(event.target);
    if (place) {
      props.onSelect(place);
    }
  };
  return (
    <div
      ref={host}
      role="rowgroup"
      onPointerDown={select}
      onDblClick={(event) => cellAt(event.target) && props.state.inspect(true)}
    />
  );
}
