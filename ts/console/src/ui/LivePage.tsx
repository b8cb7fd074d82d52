/** A page that lists rows and polls them while it is visible. */
import { createComputed, Match, onCleanup, onMount, Switch, type JSX } from 'solid-js';
import { createStore, reconcile } from 'solid-js/store';
import { type Loading, failureOf } from '../state/loading.js';
import type { PageName } from '../page/pages.js';

interface LivePageProps<Row extends object> {
  readonly page: PageName;
  readonly title: string;
  readonly hint: (rows: readonly Row[]) => string;
  readonly everyMs: number;
  readonly poll: () => unknown;
  readonly loaded: Loading<readonly Row[]>;
  /** Field that identifies a row. */
  readonly key: keyof Row & string;
  /** Title to show if the rows could not be loaded. */
  readonly unread: string;
  readonly empty: JSX.Element;
  readonly children: (rows: readonly Row[]) => JSX.Element;
}

export function LivePage<Row extends object>(props: LivePageProps<Row>): JSX.Element {
  // Rows with the same key keep their object, so that the element and the focus are preserved.
  const [store, setStore] = createStore<{ rows: Row[] }>({ rows: [] });
  createComputed(() => {
    if (props.loaded.state === 'ready') {
      setStore('rows', reconcile([...props.loaded.value], { key: props.key }));
    }
  });
  onMount(() => {
    props.poll();
    const timer = setInterval(() => !document.hidden && props.poll(), props.everyMs);
    onCleanup(() => clearInterval(timer));
  });
  const failure = (): string => failureOf(props.loaded);
  return (
    <section class="page" aria-labelledby={`${props.page}-title`} data-region={props.page}>
      <header class="page-head">
        <h1 id={`${props.page}-title`}>{props.title}</h1>
        <p class="hint">{props.hint(store.rows)}</p>
      </header>
      <Switch>
        <Match when={failure()}>
          <div class="empty">
            <strong>{props.unread}</strong>
            <p>
              <bdi>{failure()}</bdi>
            </p>
          </div>
        </Match>
        <Match when={store.rows.length > 0}>{props.children(store.rows)}</Match>
        <Match when={props.loaded.state === 'ready'}>
          <div class="empty">{props.empty}</div>
        </Match>
      </Switch>
    </section>
  );
}
