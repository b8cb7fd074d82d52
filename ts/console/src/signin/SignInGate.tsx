/** Covers the page while the server requires a login; the page behind it stays. */
import { createEffect, createMemo, lazy, on, Show, Suspense, untrack, type JSX } from 'solid-js';
import type { Session } from '../state/session.js';
import { query } from '../api/client.js';
import { lastUser } from './memory.js';
import { hasProvider } from './provider.js';
import { signedIn, signIn } from './state.js';

const SignInPage = lazy(() => import('./SignInPage.jsx'));

export function SignInGate(props: { session: Session; children: JSX.Element }): JSX.Element {
  const asks = (): boolean => signIn().state === 'out';
  createEffect(
    on(asks, (now, before) => {
      if (before === true && !now) {
        void props.session.schema.refresh();
      }
    }),
  );
  // Results are kept for the user who saw them.
  const reader = createMemo((): string | undefined => {
    const now = signIn();
    if (now.state === 'in') {
      return now.user;
    }
    const isOpen = props.session.settings() !== undefined && !props.session.hasUsers;
    return now.state === 'unasked' && isOpen ? '' : undefined;
  });
  createEffect(() => {
    const user = reader();
    if (user === undefined) {
      props.session.keepNoResults();
    } else {
      void props.session.restoreResults(user);
    }
  });
  // After a reload the cookie still counts: who is it?
  createEffect(() => {
    const asksForLogin = props.session.hasUsers;
    if (asksForLogin && untrack(signIn).state === 'unasked') {
      void query('select current_user()', { maxRows: 1 }).then(
        ({ rows }) => {
          const user = String(rows[0]?.[0] ?? '');
          // No user of the database has the name of a person of the provider.
          signedIn(
            user,
            hasProvider(props.session.settings()?.config ?? {}) && user === lastUser(),
          );
        },
        () => undefined,
      );
    }
  });
  return (
    <>
      <div class="gate" inert={asks()}>
        {props.children}
      </div>
      <Show when={asks() && props.session.settings()}>
        {(settings) => (
          <Suspense>
            <SignInPage
              settings={settings()}
              beforeLeaving={() => props.session.workspace.saveNow()}
            />
          </Suspense>
        )}
      </Show>
    </>
  );
}
