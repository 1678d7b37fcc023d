import { isProtected, prefix } from './stage.ts'

/**
 * Creates a secret without a value. The platform writes the value itself, so that no secret passes through a deployment
 * or its state.
 */
const createSecret = (id: string, name: string, description: string) =>
  new aws.secretsmanager.Secret(
    id,
    { name: `${prefix}/${name}`, description, recoveryWindowInDays: isProtected ? 30 : 0 },
    { protect: isProtected, retainOnDelete: isProtected },
  )

export const accessKeys = createSecret('AccessKeys', 'access-keys', 'Keys that sign access tokens')
export const moduleTokenKeys = createSecret('ModuleTokenKeys', 'module-token-keys', 'Keys that sign tokens for modules')
export const statementKeys = createSecret('StatementKeys', 'statement-keys', 'Key that signs job statements')
export const webhookKey = createSecret(
  'WebhookKey',
  'webhook-key',
  'Key from which the secrets of webhooks are derived',
)
export const moduleKey = createSecret('ModuleKey', 'module-key', 'Key from which the tokens of modules are derived')
export const auditKey = createSecret('AuditKey', 'audit-key', 'Key that signs checkpoints of audit trails')
export const initialAdminToken = createSecret(
  'InitialAdminToken',
  'initial-admin-token',
  'Authorises the first-run setup, once',
)
/** Name of the secret with the credentials of registries, as JSON. Operators create the secret if they need it. */
export const registriesName = `${prefix}/registries`

/** Name prefix of the identity providers' secrets, which the platform creates and deletes. */
export const identityPrefix = `${prefix}/identity`
