/** A platform on this machine; tells its parent where it is and how to set it up. `node platform.ts [<functions>]` */
import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { awsEnvironment, clientSettings } from '@platform/local/emulators/http/environment'
import { startPlatform } from '@platform/local/platform'
import { parseSettings } from '@platform/local/settings'

/** Where a platform and its store are, and the token that sets it up. */
export interface Announcement {
  url: string
  initialAdminToken: string
  /** What an SDK needs to reach the stand-ins. */
  environment: Record<string, string>
}

const settings = parseSettings(process.env)
const functionsDir = process.argv[2] ?? settings.functionsDir
const { url, emulators, stop } = await startPlatform({ ...settings, functionsDir })
const secrets = new SecretsManagerClient(clientSettings(emulators.secretsUrl, emulators.accessKeyId))
const { SecretString: initialAdminToken = '' } = await secrets.send(
  new GetSecretValueCommand({ SecretId: 'platform/initial-admin-token' }),
)
process.on('disconnect', () => void stop().then(() => process.exit()))
process.send?.({ url, initialAdminToken, environment: awsEnvironment(emulators) } satisfies Announcement)
