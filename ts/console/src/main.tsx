/** Entry point of the console: handles the identity provider's response, then shows the console. */
import { render } from 'solid-js/web';
import { begin } from './signin/begin.js';
import { SignInGate } from './SignInGate.js';

const host = document.getElementById('app') ?? document.body;
// This must run first, so that the authorization code does not remain in the URL.
await begin();
render(() => <SignInGate />, host);
