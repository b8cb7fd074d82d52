/** Whether a user is signed in on this page, as far as it knows. */
import { createSignal, type Accessor } from 'solid-js';
import { loginTaken, onLoginRefused, useTokens } from '../api/credentials.js';
import { entered, whySignedOut } from './memory.js';

export type SignIn =
  /** The user was not asked to sign in so far. */
  | { readonly state: 'unasked' }
  | { readonly state: 'in'; readonly user: string; readonly byProvider: boolean }
  /** The server wants to know who asks; `notice` tells why again. */
  | { readonly state: 'out'; readonly notice: string | undefined };

const [current, setCurrent] = createSignal<SignIn>({ state: 'unasked' });

export const signIn: Accessor<SignIn> = current;

/** `byProvider`: the identity provider knows this name, the database does not. */
export function signedIn(user: string, byProvider = false): void {
  loginTaken();
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
