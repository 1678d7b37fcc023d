import { config } from '@platform/core/config'
import { type ModuleRequester } from '../runtimes/port.ts'
import { tokenOf } from '../runtimes/token.ts'

let picked: Promise<ModuleRequester> | undefined

/** What asks modules here, for functions that only ask: with it comes no code that deploys, and reads no images. */
export const moduleRequester = (): Promise<ModuleRequester> =>
  (picked ??= config.PLAT_MODULE_RUNTIME === 'lambda' ? ofLambda() : ofHost())

async function ofHost(): Promise<ModuleRequester> {
  const { hostedRuntime } = await import('../runtimes/hosted.ts')
  return hostedRuntime()
}

async function ofLambda(): Promise<ModuleRequester> {
  const { lambdaRequest } = await import('../runtimes/lambda/request.ts')
  return { request: lambdaRequest({}, tokenOf) }
}
