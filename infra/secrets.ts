import { isProduction, prefix } from './stage.ts'

/** The platform writes the values itself, so that no secret passes through a deployment or its state. */
const secret = (id: string, name: string, description: string) =>
  new aws.secretsmanager.Secret(
    id,
    { name: `${prefix}/${name}`, description, recoveryWindowInDays: isProduction ? 30 : 0 },
    { protect: isProduction, retainOnDelete: isProduction },
  )

export const signingKeys = secret('SigningKeys', 'signing-keys', 'Keys that sign access tokens and job statements')
export const initialAdminToken = secret(
  'InitialAdminToken',
  'initial-admin-token',
  'Authorises the first-run setup, once',
)
export const registries = secret('Registries', 'registries', 'Credentials of registries, as JSON; set by operators')

/** Name prefix of the identity providers' secrets, which the platform creates and deletes. */
export const identityPrefix = `${prefix}/identity`
