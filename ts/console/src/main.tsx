/** Where the page begins: takes the provider's answer, restores the drafts, shows the shell. */
import { render } from 'solid-js/web';
import { App } from './shell/App.js';
import { begin } from './signin/begin.js';
import { SignInGate } from './signin/SignInGate.js';
import { Session } from './state/session.js';
import { Workspace } from './state/workspace.js';

const host = document.getElementById('app');
if (!host) {
  throw new Error('the page has no #app element');
}
// First: a code must not stay in the address.
await begin();
const session = new Session(await Workspace.open());
render(
  () => (
    <SignInGate session={session}>
      <App session={session} />
    </SignInGate>
  ),
  host,
);
