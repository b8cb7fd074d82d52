/** Sign-in state of this page. */
import { createSignal, type Accessor } from 'solid-js';
import { loginAccepted, onLoginRefused, useTokens } from '../api/credentials.js';
import { entered, whySignedOut } from './memory.js';

export type SignIn =
  /** The user has not been asked to sign in yet. */
  | { readonly state: 'unasked' }
  | { readonly state: 'in'; readonly user: string; readonly byProvider: boolean }
  /** The server requires a sign-in; `notice` explains why it is needed again. */
  | { readonly state: 'out'; readonly notice: string | undefined };

const [current, setCurrent] = createSignal<SignIn>({ state: 'unasked' });

export const signIn: Accessor<SignIn> = current;

/**
 * Marks a user as signed in. If `byProvider` is true, the name is that of an external user, who is
 * not in the database.
 */
export function signedIn(user: string, byProvider = false): void {
  loginAccepted();
  entered(user);
  setCurrent({ state: 'in', user, byProvider });
}

export function signedOut(notice?: string): void {
  useTokens(undefined);
  setCurrent({ state: 'out', notice });
}

onLoginRefused(() => {
  const before = current();
  if (before.state !== 'out') {
    signedOut(before.state === 'in' ? whySignedOut() : undefined);
  }
});
