/**
 * Shows the console to signed-in users. If the server requires a login, only the sign-in page is
 * shown until a user has signed in. Signing out replaces the document.
 */
import { createEffect, createSignal, lazy, on, onMount, Show, Suspense, type JSX } from 'solid-js';
import { query, settings, Unreachable, type Settings } from './api/client.js';
import { awaitsLogin } from './api/credentials.js';
import { App } from './shell/App.js';
import { Session } from './state/session.js';
import { useUserRecords } from './state/store.js';
import { Workspace } from './state/workspace.js';
import { endPage, forgetBrowser } from './signin/end.js';
import { endSession } from './signin/login.js';
import {
  hasLeft,
  lastUser,
  onUserChanged,
  signedInUser,
  takeNotice,
  whySignedOut,
} from './signin/memory.js';
import { hasProvider } from './signin/provider.js';
import { signedIn, signedOut, signIn } from './signin/state.js';
import { texts } from './texts.js';

const SignInPage = lazy(() => import('./signin/SignInPage.jsx'));

const RETRY_MS = 1000;

export function SignInGate(): JSX.Element {
  const [known, setKnown] = createSignal<Settings>();
  const [session, setSession] = createSignal<Session>();
  const [isSilent, setSilent] = createSignal(false);

  const arrive = async (): Promise<void> => {
    const found = await answered(settings, setSilent);
    if (found.config['acl.enabled'] === true) {
      await admit(found, setSilent);
      setKnown(found);
    } else {
      setSession(await begun(''));
    }
  };
  onMount(() => void arrive());
  createEffect(
    on([signIn, known], ([now, isKnown]) => {
      if (isKnown && now.state === 'in' && !session()) {
        beginFor(now.user, setSilent).then(setSession, (cause: unknown) =>
          signedOut(cause instanceof Error ? cause.message : texts.signIn.signInFailed),
        );
      }
    }),
  );
  createEffect(
    on(signIn, (now, before) => {
      const shown = session();
      if (now.state === 'out' && shown) {
        const user = before?.state === 'in' ? before.user : '';
        void endPage({ workspace: shown.workspace, user, notice: now.notice });
      }
    }),
  );
  return (
    <Show
      when={session()}
      fallback={
        <>
          <Show when={isSilent()}>
            <p class="signin" role="status">
              {texts.signIn.retrying}
            </p>
          </Show>
          <Show when={signIn().state === 'out' && known()}>
            {(shown) => (
              <Suspense>
                <SignInPage settings={shown()} />
              </Suspense>
            )}
          </Show>
        </>
      }
    >
      {(shown) => (
        <div class="gate">
          <App session={shown()} />
        </div>
      )}
    </Show>
  );
}

/** Signs the user in if the cookie from an earlier page still identifies a user. */
async function admit(found: Settings, setSilent: (isSilent: boolean) => void): Promise<void> {
  const notice = takeNotice();
  if (signIn().state === 'unasked' && hasLeft()) {
    // The session may still exist if the server was unreachable when the user signed out.
    await endSession({});
    signedOut(notice);
  } else if (signIn().state === 'unasked') {
    const user = await answered(whoIsIt, setSilent);
    if (user !== undefined) {
      // An external user's name never identifies a database user.
      signedIn(user, hasProvider(found.config) && user === lastUser());
    } else {
      signedOut(notice);
    }
  }
  if (signIn().state === 'out') {
    await forgetBrowser();
  }
}

async function whoIsIt(): Promise<string | undefined> {
  try {
    const { rows } = await query('select current_user()', { maxRows: 1 });
    const name = rows[0]?.[0];
    // A proxy may reject the request with a body that parses as a response without rows.
    return awaitsLogin() || typeof name !== 'string' ? undefined : name;
  } catch (cause) {
    if (cause instanceof Unreachable) {
      throw cause;
    }
    return undefined;
  }
}

async function beginFor(user: string, setSilent: (isSilent: boolean) => void): Promise<Session> {
  const { UserStore } = await import('./state/user-store.js');
  useUserRecords(await answered(() => UserStore.open(), setSilent));
  const session = await begun(user);
  onUserChanged(() => {
    if (signedInUser() !== user && signIn().state === 'in') {
      signedOut(signedInUser() === undefined ? whySignedOut() : undefined);
    }
  });
  // Without these listeners, the browser's back/forward cache could show this page to the next
  // user.
  addEventListener('pagehide', ({ persisted }) => persisted && document.body.replaceChildren());
  addEventListener('pageshow', ({ persisted }) => persisted && location.reload());
  return session;
}

async function begun(user: string): Promise<Session> {
  const session = new Session(await Workspace.open());
  void session.results.restore(user);
  return session;
}

/** Sends a request until the server responds, and returns its result. */
async function answered<T>(
  request: () => Promise<T>,
  setSilent: (isSilent: boolean) => void,
): Promise<T> {
  for (;;) {
    try {
      const found = await request();
      setSilent(false);
      return found;
    } catch (cause) {
      if (!(cause instanceof Unreachable)) {
        throw cause;
      }
      setSilent(true);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}
