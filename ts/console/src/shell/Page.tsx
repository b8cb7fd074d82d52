/** The page in front, where it is not the workspace. Each comes when it is first looked at. */
import { lazy, Match, Suspense, Switch, type JSX } from 'solid-js';
import type { Session } from '../state/session.js';
import { spot } from './pages.js';

const StartPage = lazy(() => import('../start/StartPage.js'));
const TablesPage = lazy(() => import('../tables/TablesPage.js'));
const ImportPage = lazy(() => import('../import/ImportPage.js'));
const AccessPage = lazy(() => import('../access/AccessPage.js'));
const QueriesPage = lazy(() => import('../queries/QueriesPage.js'));
const NotebooksPage = lazy(() => import('../kept/NotebooksPage.js'));
const JobsPage = lazy(() => import('../jobs/JobsPage.js'));

export function Page(props: { session: Session }): JSX.Element {
  return (
    <Suspense>
      <Switch>
        <Match when={spot().page === 'start'}>
          <StartPage session={props.session} />
        </Match>
        <Match when={spot().page === 'tables'}>
          <TablesPage session={props.session} />
        </Match>
        <Match when={spot().page === 'import'}>
          <ImportPage session={props.session} />
        </Match>
        <Match when={spot().page === 'access'}>
          <AccessPage session={props.session} />
        </Match>
        <Match when={spot().page === 'queries'}>
          <QueriesPage session={props.session} />
        </Match>
        <Match when={spot().page === 'notebooks'}>
          <NotebooksPage session={props.session} />
        </Match>
        <Match when={spot().page === 'jobs'}>
          <JobsPage session={props.session} />
        </Match>
      </Switch>
    </Suspense>
  );
}
