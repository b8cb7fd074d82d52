/**
 * A table with a header. Numeric columns are right-aligned. The header of the actions column is
 * visible only to screen readers.
 */
import { For, Show, type JSX } from 'solid-js';

interface ListingProps<Row> {
  readonly class?: string;
  readonly caption?: string;
  readonly heads: readonly (readonly [name: string, kind?: 'num' | 'actions'])[];
  readonly rows: readonly Row[];
  readonly children: (row: Row) => JSX.Element;
}

export function Listing<Row>(props: ListingProps<Row>): JSX.Element {
  return (
    <table class={props.class ?? 'listing'}>
      <Show when={props.caption}>
        <caption>{props.caption}</caption>
      </Show>
      <thead>
        <tr>
          <For each={props.heads}>
            {([name, kind]) => (
              <th scope="col" class={kind === 'num' ? 'num' : undefined}>
                {kind === 'actions' ? <span class="visually-hidden">{name}</span> : name}
              </th>
            )}
          </For>
        </tr>
      </thead>
      <tbody>
        <For each={props.rows}>{(row) => props.children(row)}</For>
      </tbody>
    </table>
  );
}
