/**
 * Owners of views. A view reads its tables with its owner's rights. A user who specifies an owner
 * must therefore already have that owner's rights, or be able to obtain them.
 */
import { type Identity, identityKey } from '../auth/index.js';
import type { Owner, Principal } from '../session/index.js';
import type { Tree } from '../sql/index.js';
import { denied } from './authorise.js';
import type { StoredPrincipal } from './principals.js';
import { type AccessContext, rightsOf } from './setting.js';
import { keyOf, refused } from './store.js';

export const NAME_AN_OWNER = 'missing owner: add OWNED BY with a group, user or service account';

interface Option {
  readonly name: { readonly text: string };
  readonly value: { readonly text: string } | null;
}

type ViewNode = Extract<Tree['nodes'][number], { kind: 'CreateView' }>;

/**
 * Returns the owner in a view's OWNED BY. In materialized and live views, OWNED BY is one of the
 * view's own clauses.
 */
export function ownerOfView(node: ViewNode): string | null {
  return node.material?.owner?.text ?? node.live?.owner?.text ?? ownerOf(node.options);
}

/** Returns the owner specified in OWNED BY, if any. */
export function ownerOf(options: readonly Option[]): string | null {
  const owned = options.find(({ name }) => name.text.toUpperCase() === 'OWNED');
  return owned?.value?.text ?? null;
}

export function makesView({ nodes, root }: Partial<Tree>): boolean {
  return root !== undefined && nodes?.[root]?.kind === 'CreateView';
}

/** Returns the owner of the view that a statement creates, replaces or alters. */
export function viewOwner(context: AccessContext, principal: Principal, tree: Tree): Owner {
  const node = tree.nodes[tree.root];
  const name = node?.kind === 'CreateView' ? ownerOfView(node) : null;
  const { identity } = principal;
  if (name === null) {
    if (identity === undefined || identity.kind === 'external') {
      throw refused(NAME_AN_OWNER);
    }
    return { name: principal.name, id: identityKey(identity) };
  }
  const { all } = rightsOf(context.store, principal);
  if (name === context.setting.adminName) {
    if (!all) {
      throw denied('OWNED BY', name);
    }
    return { name, id: identityKey({ kind: 'admin', name }) };
  }
  const owner = context.store.find(name);
  if (!all && (owner === undefined || !mayActAs(context, principal, owner))) {
    throw denied('OWNED BY', name);
  }
  if (owner === undefined) {
    throw refused(`user, group or service account '${name}' does not exist`);
  }
  return { name, id: keyOf(owner) };
}

/**
 * Returns whether the user may act as the owner. The owner must be the user, one of the user's
 * groups, or a service account that the user may assume.
 */
function mayActAs(context: AccessContext, principal: Principal, owner: StoredPrincipal): boolean {
  const { identity } = principal;
  if (identity === undefined) {
    return false;
  }
  const { store } = context;
  return (
    keyOf(owner) === identityKey(identity) ||
    (owner.kind === 'service account' && rightsOf(store, principal).accounts.has(owner.name)) ||
    (owner.kind === 'group' && isIn(store.groupsOf(identity), owner))
  );
}

function isIn(groups: readonly StoredPrincipal[], group: StoredPrincipal): boolean {
  return groups.some(({ id }) => id === group.id);
}

/**
 * Returns whether a name in a statement is the user's own. An external user never matches a local
 * name.
 */
export function isSelf({ name, identity }: Principal, of: string): boolean {
  return name === of && identity !== undefined && identity.kind !== 'external';
}

/**
 * Returns the audit log fields that identify an external user, because external users choose their
 * own names.
 */
export function described(identity: Identity | undefined): Record<string, string> {
  if (identity?.kind !== 'external') {
    return {};
  }
  const { kind, issuer = '', subject = '' } = identity;
  return { kind, issuer, subject };
}
