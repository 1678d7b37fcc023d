/** A platform on this machine with the bench's own functions; tells its parent where it is and how to set it up. */
import { fileURLToPath } from 'node:url'
import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { clientSettings } from '@platform/local/aws-environment'
import { startPlatform } from '@platform/local/platform'
import { parseSettings } from '@platform/local/settings'

/** Where a platform is, and the token that sets it up. */
export interface Announcement {
  url: string
  initialAdminToken: string
}

const functionsDir = fileURLToPath(new URL('functions', import.meta.url))
const { url, standIns, stop } = await startPlatform({ ...parseSettings(process.env), functionsDir })
const secrets = new SecretsManagerClient(clientSettings(standIns.secretsUrl, standIns.accessKeyId))
const { SecretString = '' } = await secrets.send(
  new GetSecretValueCommand({ SecretId: 'platform/initial-admin-token' }),
)
process.on('disconnect', () => void stop().then(() => process.exit()))
process.send?.({ url, initialAdminToken: SecretString } satisfies Announcement)
