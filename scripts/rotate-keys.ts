/** `npm run rotate-keys`: replaces the key of access tokens or of job statements while the platform runs. */
import { parseCommandLine } from '@platform/local/command-line'
import { awsEnvironment } from '@platform/local/emulators/http/environment'
import { findRunningPlatform } from '@platform/local/running-platform'
import { invokeBootstrap } from './invoke-bootstrap.ts'

const usage = `npm run rotate-keys -- [--statements] [--withdraw] [--stage NAME]

Replaces a signing key while the platform runs: by default, the keys of access and module tokens.

  --statements  replaces the key of job statements instead
  --withdraw    also rejects everything that older keys have signed; use it if a key has leaked
  --stage NAME  name of a deployment, reached with your AWS credentials and region; default: this machine`

const results = {
  access: `Access tokens are signed with a new key, by every thread within five minutes.
Those that were signed before stay valid until they expire, after fifteen minutes at most.`,
  'access withdrawn': `Access tokens are signed with a new key, and no other key is valid: callers must sign in again or refresh.
Some threads accept the old keys for up to five minutes. Restart the platform to reject them immediately.`,
  statements: `Job statements are signed with a new key, by every thread within five minutes.
Relays learn it with their next heartbeat. A relay that has missed more than ten replacements must be enrolled again.`,
  'statements withdrawn': `Job statements are signed with a new key that no relay trusts, by every thread within five minutes.
Enroll every relay again: plat cluster enrollment-token CLUSTER. Until then its jobs stay queued.`,
}

async function rotateHere(request: { rotate: 'access' | 'statements'; withdraw: boolean }): Promise<void> {
  const { table, secretNames, ...emulators } = await findRunningPlatform(process.env)
  Object.assign(process.env, awsEnvironment({ ...emulators, sqsUrl: '' }), { PLAT_TABLE: table }, secretNames)
  // Imported after the environment is set, because the module reads it on import.
  const { rotationIn } = await import('@platform/core/signing/keys')
  await rotationIn(request)?.()
}

const { statements, withdraw, stage } = parseCommandLine(usage, {
  options: {
    statements: { type: 'boolean', default: false },
    withdraw: { type: 'boolean', default: false },
    stage: { type: 'string' },
  },
}).values
try {
  const rotate = statements ? 'statements' : 'access'
  if (stage === undefined) await rotateHere({ rotate, withdraw })
  else await invokeBootstrap(stage, { rotate, withdraw })
  console.log(results[withdraw ? (`${rotate} withdrawn` as const) : rotate])
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
