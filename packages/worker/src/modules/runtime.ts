import { config } from '@platform/core/config'
import type { ModuleRuntime } from '../runtimes/port.ts'

let runtime: Promise<ModuleRuntime> | undefined

/** Opens the configured runtime (`PLAT_MODULE_RUNTIME`). Imports no other runtime. */
export const moduleRuntime = (): Promise<ModuleRuntime> =>
  (runtime ??= config.PLAT_MODULE_RUNTIME === 'lambda' ? openLambda() : openHosted())

async function openHosted(): Promise<ModuleRuntime> {
  const { hostedRuntime } = await import('../runtimes/hosted.ts')
  return hostedRuntime()
}

async function openLambda(): Promise<ModuleRuntime> {
  const { openLambdaRuntime } = await import('./lambda-runtime.ts')
  return openLambdaRuntime()
}
