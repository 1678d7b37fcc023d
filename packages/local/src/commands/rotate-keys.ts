/** `npm run rotate-keys`: the running platform signs new access tokens with another key. */
import { parseArgs } from 'node:util'
import { awsEnvironment } from '../emulators/http/environment.ts'
import { findRunningPlatform } from '../running-platform.ts'

const rotatedMessage = `Access tokens are signed with a new key, by every thread within five minutes.
Those that were signed before stay valid until they expire, after fifteen minutes at most.`

const withdrawnMessage = `Access tokens are signed with a new key, and no other key is valid: callers must sign in again or refresh.
Some threads accept the old keys for up to five minutes. Restart the platform to reject them immediately.`

async function rotate(withdraw: boolean): Promise<void> {
  const { table, signingKeysSecret, ...emulators } = await findRunningPlatform(process.env)
  Object.assign(process.env, awsEnvironment({ ...emulators, sqsUrl: '' }), {
    PLAT_TABLE: table,
    ...(signingKeysSecret !== undefined && { PLAT_SECRET_SIGNING_KEYS: signingKeysSecret }),
  })
  // Imported after the environment is set, because the module reads it on import.
  const { ensureKeys } = await import('@platform/core/signing/keys')
  await ensureKeys({ rotate: true, withdraw })
  console.log(withdraw ? withdrawnMessage : rotatedMessage)
}

try {
  const { values } = parseArgs({ options: { withdraw: { type: 'boolean', default: false } } })
  await rotate(values.withdraw)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
