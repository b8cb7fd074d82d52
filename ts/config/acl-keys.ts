/** Configuration keys for users, grants and the audit log. */
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
  aclEnabled: bool('acl.enabled', false, 'check permissions of users, groups and service accounts'),
  aclAdminUser: text('acl.admin.user', 'admin', 'name of the configured administrator'),
  aclAdminPassword: secret(
    'acl.admin.password',
    'quest',
    'password of the configured administrator',
    RELOAD,
  ),
  aclAdminEnabled: bool(
    'acl.admin.user.enabled',
    true,
    'allow the configured administrator to log in',
  ),
  aclNameLength: integer(
    'acl.entity.name.max.length',
    '255',
    'maximum number of characters in a user, group or service account name',
  ),
  aclHashIterations: integer(
    'acl.password.hash.iteration.count',
    '100000',
    'password hash iterations; PostgreSQL clients perform the same number at every login',
  ),
  aclTokenRefresh: seconds(
    'acl.rest.token.refresh.threshold',
    '10',
    'minimum time in seconds between extensions of a REST token created with REFRESH',
  ),
  aclAuditSize: size(
    'acl.audit.file.size',
    '64M',
    'size at which the audit log is rotated; 0 disables rotation',
    OWN,
  ),
  aclAuditFiles: key(
    'acl.audit.file.count',
    'integer',
    '16',
    parseAuditFiles,
    'number of audit log files to keep, including the current one; the oldest are deleted',
    OWN,
  ),
} as const;
