/**
 * Sign-in page. It offers a password form, and single sign-on if the server has an identity
 * provider.
 */
import { createSignal, onMount, Show, type JSX } from 'solid-js';
import type { Settings } from '../api/client.js';
import { useTokens } from '../api/credentials.js';
import { Icon, Logo } from '../ui/icons.js';
import { redirectToProvider, type Prompt } from './leave.js';
import { basic, beginSession } from './login.js';
import { hasLeft, lastUser, mayTryAgain } from './memory.js';
import { hasProvider, readProvider } from './provider.js';
import { signedIn, signIn } from './state.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export default function SignInPage(props: { settings: Settings }): JSX.Element {
  const [problem, setProblem] = createSignal(noticeOf());
  const [busy, setBusy] = createSignal(false);
  /** True if the message explains why a new sign-in is needed and is therefore not an error. */
  const isNotice = (): boolean => problem() !== '' && problem() === noticeOf();
  const byProvider = (): boolean => hasProvider(props.settings.config);

  const attempt = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setProblem('');
    try {
      await work();
    } catch (cause) {
      setProblem(cause instanceof Error ? cause.message : texts.signIn.signInFailed);
    } finally {
      setBusy(false);
    }
  };
  const leave = (prompt?: Prompt): Promise<void> =>
    attempt(() => redirectToProvider(readProvider(props.settings.config), prompt));

  onMount(() => {
    const expected = signIn();
    const isUnexpected = expected.state === 'out' && expected.notice === undefined;
    // A returning user is signed in silently, unless the user signed out or the redirects loop.
    if (byProvider() && isUnexpected && lastUser() !== undefined && !hasLeft() && !busy()) {
      if (mayTryAgain()) {
        void leave('none');
      }
    }
  });

  return (
    <div class="signin" role="dialog" aria-modal="true" aria-labelledby="signin-title">
      <div class="signin-card">
        <span class="signin-logo">
          <Logo />
        </span>
        <h1 id="signin-title">{titleOf(props.settings)}</h1>
        <Show when={preferenceOf(props.settings, 'instance_type')}>
          {(role) => <span class="role">{role()}</span>}
        </Show>
        <Show when={byProvider()}>
          <ProviderChoice busy={busy()} leave={(prompt) => void leave(prompt)} />
        </Show>
        <PasswordForm
          busy={busy()}
          isPrimary={!byProvider()}
          submit={(user, password) =>
            void attempt(async () => {
              const authorization = basic(user, password);
              const name = await beginSession(authorization);
              if (!isSecureContext) {
                // Without HTTPS, browsers do not report which site sent a request with a cookie, so
                // the server ignores the cookie.
                useTokens(() => Promise.resolve(authorization));
              }
              signedIn(name ?? user);
            })
          }
        />
        <Problem text={problem()} isNotice={isNotice()} />
      </div>
    </div>
  );
}

function Problem(props: { text: string; isNotice: boolean }): JSX.Element {
  return (
    <p class="signin-problem" classList={{ notice: props.isNotice }} role="alert">
      <Show when={props.text}>
        <Show when={!props.isNotice}>
          <Icon name="alert" />
        </Show>
        {props.text}
      </Show>
    </p>
  );
}

function ProviderChoice(props: { busy: boolean; leave: (prompt?: Prompt) => void }): JSX.Element {
  const known = lastUser();
  return (
    <div class="signin-provider">
      <button
        class="button primary"
        data-action="sso"
        disabled={props.busy}
        onClick={() => props.leave()}
      >
        {known === undefined ? texts.signIn.withSso : fill(texts.signIn.continueAs, { known })}
      </button>
      <Show when={known !== undefined}>
        <button
          class="button"
          data-action="sso-other"
          disabled={props.busy}
          onClick={() => props.leave('login')}
        >
          {texts.signIn.otherAccount}
        </button>
      </Show>
    </div>
  );
}

function PasswordForm(props: {
  busy: boolean;
  /**
   * True if the password is the preferred way to sign in. An identity provider takes precedence.
   */
  isPrimary: boolean;
  submit: (user: string, password: string) => void;
}): JSX.Element {
  let user!: HTMLInputElement;
  let password!: HTMLInputElement;
  onMount(() => user.focus());
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    props.submit(user.value, password.value);
    password.value = '';
  };
  return (
    <form class="signin-form" onSubmit={submit}>
      <label for="signin-user">{texts.common.user}</label>
      <div class="field">
        <input ref={user} id="signin-user" name="user" autocomplete="username" required />
      </div>
      <label for="signin-password">{texts.common.password}</label>
      <div class="field">
        <input
          ref={password}
          id="signin-password"
          name="password"
          type="password"
          autocomplete="current-password"
          required
        />
      </div>
      <button
        class="button"
        classList={{ primary: props.isPrimary }}
        type="submit"
        disabled={props.busy}
      >
        {texts.signIn.signIn}
      </button>
    </form>
  );
}

function noticeOf(): string {
  const now = signIn();
  return now.state === 'out' ? (now.notice ?? '') : '';
}

function titleOf(settings: Settings): string {
  return fill(texts.signIn.title, {
    server: preferenceOf(settings, 'instance_name') || 'Tidemark',
  });
}

function preferenceOf({ preferences }: Settings, name: string): string {
  const value = preferences[name];
  return typeof value === 'string' ? value : '';
}
