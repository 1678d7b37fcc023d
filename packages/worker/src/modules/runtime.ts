import { config } from '@platform/core/config'
import { type ModuleRuntime } from '../runtimes/port.ts'

let picked: Promise<ModuleRuntime> | undefined

/** The configured module runtime (`PLAT_MODULE_RUNTIME`). Only the selected runtime is loaded. */
export const moduleRuntime = (): Promise<ModuleRuntime> =>
  (picked ??= config.PLAT_MODULE_RUNTIME === 'lambda' ? onLambda() : hosted())

async function hosted(): Promise<ModuleRuntime> {
  const { hostedRuntime } = await import('../runtimes/hosted.ts')
  return hostedRuntime()
}

async function onLambda(): Promise<ModuleRuntime> {
  const { lambdaRuntimeHere } = await import('./lambda-runtime.ts')
  return lambdaRuntimeHere()
}
