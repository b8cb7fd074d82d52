/**
 * Shows the active page unless it is the workspace. The code of each page is loaded on first use.
 */
import { lazy, Match, Suspense, Switch, type JSX } from 'solid-js';
import type { Session } from '../state/session.js';
import { route } from '../page/pages.js';

const StartPage = lazy(() => import('../start/StartPage.js'));
const TablesPage = lazy(() => import('../tables/TablesPage.js'));
const ImportPage = lazy(() => import('../import/ImportPage.js'));
const AccessPage = lazy(() => import('../access/AccessPage.js'));
const QueriesPage = lazy(() => import('../queries/QueriesPage.js'));
const NotebooksPage = lazy(() => import('../notebook/NotebooksPage.js'));
const JobsPage = lazy(() => import('../jobs/JobsPage.js'));

export function Page(props: { session: Session }): JSX.Element {
  return (
    <Suspense>
      <Switch>
        <Match when={route().page === 'start'}>
          <StartPage session={props.session} />
        </Match>
        <Match when={route().page === 'tables'}>
          <TablesPage session={props.session} />
        </Match>
        <Match when={route().page === 'import'}>
          <ImportPage session={props.session} />
        </Match>
        <Match when={route().page === 'access'}>
          <AccessPage schema={props.session.schema} />
        </Match>
        <Match when={route().page === 'queries'}>
          <QueriesPage activity={props.session.activity} tabs={props.session.tabs} />
        </Match>
        <Match when={route().page === 'notebooks'}>
          <NotebooksPage workspace={props.session.workspace} />
        </Match>
        <Match when={route().page === 'jobs'}>
          <JobsPage jobs={props.session.jobs} />
        </Match>
      </Switch>
    </Suspense>
  );
}
