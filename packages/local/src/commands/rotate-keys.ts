/** `npm run rotate-keys`: access tokens of the running platform are signed with another key from now on. */
import { parseArgs } from 'node:util'
import { awsEnvironment } from '../emulators/http/environment.ts'
import { findRunningPlatform } from '../running-platform.ts'

const done = `Access tokens are signed with a new key, by every thread within five minutes.
Those that were signed before stay valid until they expire, after fifteen minutes at most.`

const withdrawn = `Access tokens are signed with a new key, and no other key is valid any more: callers sign in anew, or refresh.
Some threads still believe the old keys, for five minutes at most. To end that at once, restart the platform.`

async function rotate(withdraw: boolean): Promise<void> {
  const { table, signingKeysSecret, ...standIns } = await findRunningPlatform(process.env)
  Object.assign(process.env, awsEnvironment({ ...standIns, sqsUrl: '' }), {
    PLAT_TABLE: table,
    ...(signingKeysSecret !== undefined && { PLAT_SECRET_SIGNING_KEYS: signingKeysSecret }),
  })
  // Settings are read when this is first imported.
  const { ensureKeys } = await import('@platform/core/signing/keys')
  await ensureKeys({ rotate: true, withdraw })
  console.log(withdraw ? withdrawn : done)
}

try {
  const { values } = parseArgs({ options: { withdraw: { type: 'boolean', default: false } } })
  await rotate(values.withdraw)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
