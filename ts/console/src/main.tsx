/** Entry point of the page: handles the identity provider's response, then identifies the user. */
import { render } from 'solid-js/web';
import { begin } from './signin/begin.js';
import { SignInGate } from './SignInGate.js';

const host = document.getElementById('app') ?? document.body;
// This runs first, so that the authorization code does not remain in the URL.
await begin();
render(() => <SignInGate />, host);
