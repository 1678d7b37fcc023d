import { config } from '@platform/core/config'
import type { ModuleClient } from '../runtimes/port.ts'
import { tokenOf } from '../runtimes/token.ts'

let client: Promise<ModuleClient> | undefined

/** Opens a client for functions that only call modules. */
export const moduleClient = (): Promise<ModuleClient> =>
  (client ??= config.PLAT_MODULE_RUNTIME === 'lambda' ? openLambdaClient() : openHostClient())

async function openHostClient(): Promise<ModuleClient> {
  const { hostedRuntime } = await import('../runtimes/hosted.ts')
  return hostedRuntime()
}

async function openLambdaClient(): Promise<ModuleClient> {
  const { lambdaRequest } = await import('../runtimes/lambda/request.ts')
  return { request: lambdaRequest({}, tokenOf) }
}
