/** Keys for users, grants and the audit log. */
import { bool, integer, key, OWN, RELOAD, seconds, secret, size, text } from './key.js';
import { parseInteger, ValueError } from './units.js';

const AUDIT_FILES_MAX = 10_000;

function parseAuditFiles(value: string): number {
  const files = parseInteger(value);
  if (files < 1 || files > AUDIT_FILES_MAX) {
    throw new ValueError(`expected a number from 1 to ${AUDIT_FILES_MAX}, found '${value}'`);
  }
  return files;
}

export const ACL_KEYS = {
  aclEnabled: bool('acl.enabled', false, 'users, groups and grants; without it all may do all'),
  aclAdminUser: text('acl.admin.user', 'admin', 'name of the administrator of the configuration'),
  aclAdminPassword: secret('acl.admin.password', 'quest', 'password of that administrator', RELOAD),
  aclAdminEnabled: bool('acl.admin.user.enabled', true, 'that administrator may log in'),
  aclNameLength: integer(
    'acl.entity.name.max.length',
    '255',
    'characters of the name of a user, group or service account',
  ),
  aclHashIterations: integer(
    'acl.password.hash.iteration.count',
    '100000',
    'rounds of the hash over a password; wire protocol clients do as many for every login',
  ),
  aclTokenRefresh: seconds(
    'acl.rest.token.refresh.threshold',
    '10',
    'least time between two extensions of a REST token made with REFRESH',
  ),
  aclAuditSize: size(
    'acl.audit.file.size',
    '64M',
    'the audit log goes on in a new file when this one would be larger; 0: never',
    OWN,
  ),
  aclAuditFiles: key(
    'acl.audit.file.count',
    'integer',
    '16',
    parseAuditFiles,
    'files of the audit log that are kept, the current one among them; the oldest go',
    OWN,
  ),
} as const;
