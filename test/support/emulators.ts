import { setAwsTransport } from '@platform/core/aws/sdk'
import { awsEnvironment } from '@platform/local/emulators/http/environment'
import { type RunningEmulators, startEmulators } from '@platform/local/emulators/start'
import { callOver, type CallOperation, transportOver } from '@platform/local/emulators/port'

// The test files of a process share its emulators.
const globals: typeof globalThis & { emulators?: RunningEmulators & { call: CallOperation } } = globalThis

async function start() {
  const started = await startEmulators(undefined, console.error, new URL('emulators/hooks.ts', import.meta.url).href)
  const shared = { ...started, call: callOver(started.connect()) }
  // Tests may spy on `call`.
  setAwsTransport(transportOver((...parameters) => shared.call(...parameters)))
  return shared
}

export const emulators = (globals.emulators ??= await start())

Object.assign(process.env, awsEnvironment(emulators))
