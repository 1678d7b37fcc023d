import { InvokeCommand, LambdaClient, type LambdaClientConfig } from '@aws-sdk/client-lambda'
import { responseIn, eventOf } from './event.ts'
import { functionFailure, invokeFailure } from './errors.ts'
import { parseHandle } from './names.ts'
import { type ModuleRuntime, RuntimeError } from '../port.ts'

/** The gateway imports this file, so it contains no deployment code. */

export type TokenOf = (deploymentId: string) => Promise<string>

/**
 * Calls modules that are Lambda functions. An invocation is never retried, because only its caller knows whether the
 * request is idempotent.
 */
export function lambdaRequest(aws: LambdaClientConfig, tokenOf: TokenOf): ModuleRuntime['request'] {
  const client = new LambdaClient({ requestHandler: { connectionTimeout: 1000 }, ...aws, maxAttempts: 1 })
  return async (deployment, request, { timeoutMs, maxBytes }) => {
    const { functionName: FunctionName, functionVersion: Qualifier } = parseHandle(deployment)
    const Payload = Buffer.from(JSON.stringify(eventOf(request, await tokenOf(deployment.id))))
    const abortSignal = AbortSignal.timeout(timeoutMs)
    const response = await client
      .send(new InvokeCommand({ FunctionName, Qualifier, Payload }), { abortSignal })
      .catch((error: unknown) => {
        if (!abortSignal.aborted) throw invokeFailure(error)
        throw new RuntimeError('timeout', `No complete response within ${timeoutMs} ms.`, { cause: error })
      })
    const payload = response.Payload ?? new Uint8Array()
    if (response.FunctionError !== undefined) throw functionFailure(payload)
    return responseIn(payload, maxBytes)
  }
}
