import { setAwsTransport } from '@platform/core/aws/sdk'
import { awsEnvironment } from '@platform/local/emulators/http/environment'
import { type RunningEmulators, startEmulators } from '@platform/local/emulators/start'
import { transportOver } from '@platform/local/emulators/port'

// The test files of a process share its emulators.
const globals: typeof globalThis & { emulators?: RunningEmulators } = globalThis
if (globals.emulators === undefined) {
  globals.emulators = await startEmulators(
    undefined,
    console.error,
    new URL('emulators/hooks.ts', import.meta.url).href,
  )
  setAwsTransport(transportOver(globals.emulators.connect()))
}

Object.assign(process.env, awsEnvironment(globals.emulators))
