import { InvokeCommand, LambdaClient, type LambdaClientConfig } from '@aws-sdk/client-lambda'
import { answerOf, eventOf } from './event.ts'
import { functionFailure, invokeFailure } from './errors.ts'
import { partsOf } from './names.ts'
import { type ModuleRuntime, RuntimeError } from '../port.ts'

/** This file is all that the gateway needs: it carries no code that deploys. */

/** Derives the token of a deployment. */
export type TokenOf = (deploymentId: string) => Promise<string>

/**
 * Asks modules that are functions of Lambda. An invocation is never repeated: nobody but its caller knows whether what it
 * asks for may happen twice. One call, and none where the request cannot be carried.
 */
export function lambdaRequest(aws: LambdaClientConfig, tokenOf: TokenOf): ModuleRuntime['request'] {
  const client = new LambdaClient({ requestHandler: { connectionTimeout: 1000 }, ...aws, maxAttempts: 1 })
  return async (deployment, request, { timeoutMs, maxBytes }) => {
    const { functionName: FunctionName, functionVersion: Qualifier } = partsOf(deployment)
    const Payload = Buffer.from(JSON.stringify(eventOf(request, await tokenOf(deployment.id))))
    const abortSignal = AbortSignal.timeout(timeoutMs)
    const answer = await client
      .send(new InvokeCommand({ FunctionName, Qualifier, Payload }), { abortSignal })
      .catch((error: unknown) => {
        if (!abortSignal.aborted) throw invokeFailure(error)
        throw new RuntimeError('timeout', `No whole answer within ${timeoutMs} ms.`, { cause: error })
      })
    const payload = answer.Payload ?? new Uint8Array()
    if (answer.FunctionError !== undefined) throw functionFailure(payload)
    return answerOf(payload, maxBytes)
  }
}
