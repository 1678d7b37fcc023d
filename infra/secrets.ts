import { isProduction, prefix } from './stage.ts'

/**
 * What must not stand in the table. The platform writes their values itself, at its first start or when an operator sets
 * something up: nothing secret passes through a deployment or its state.
 */
const secret = (id: string, name: string, description: string) =>
  new aws.secretsmanager.Secret(
    id,
    { name: `${prefix}/${name}`, description, recoveryWindowInDays: isProduction ? 30 : 0 },
    { protect: isProduction, retainOnDelete: isProduction },
  )

export const signingKeys = secret('SigningKeys', 'signing-keys', 'Keys that sign access tokens and job statements')
export const initialAdminToken = secret('InitialAdminToken', 'initial-admin-token', 'Opens the first-run setup, once')
export const registries = secret('Registries', 'registries', 'Credentials of registries, as JSON: set by operators')

/** One secret for each identity provider stands below this; the platform makes and removes them. */
export const identityPrefix = `${prefix}/identity`
