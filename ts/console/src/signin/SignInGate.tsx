/** Stands before the page while the server wants to know who asks; the page behind it stays. */
import { createEffect, lazy, on, Show, Suspense, untrack, type JSX } from 'solid-js';
import type { Session } from '../state/session.js';
import { query } from '../api/client.js';
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
  // After a reload the cookie still counts: who is it?
  createEffect(() => {
    const asksForLogin = props.session.settings()?.config['acl.enabled'] === true;
    if (asksForLogin && untrack(signIn).state === 'unasked') {
      void query('select current_user()', 1).then(
        ({ rows }) => signedIn(String(rows[0]?.[0] ?? '')),
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
            <SignInPage settings={settings()} />
          </Suspense>
        )}
      </Show>
    </>
  );
}
