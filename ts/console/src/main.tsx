/** Where the page begins: takes the provider's answer, then asks who it is. */
import { render } from 'solid-js/web';
import { begin } from './signin/begin.js';
import { SignInGate } from './SignInGate.js';

const host = document.getElementById('app');
if (!host) {
  throw new Error('the page has no #app element');
}
// First: a code must not stay in the address.
await begin();
render(() => <SignInGate />, host);
