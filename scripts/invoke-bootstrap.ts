import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda'
import * as z from 'zod'

const Failure = z.object({ errorMessage: z.string() })

/** Invokes the bootstrap function of a stage. Its response, which may contain a secret, is not logged. */
export async function invokeBootstrap(stage: string, event: object): Promise<unknown> {
  const FunctionName = `platform-${stage}-fn-bootstrap:live`
  const response = await new LambdaClient().send(new InvokeCommand({ FunctionName, Payload: JSON.stringify(event) }))
  const result: unknown = JSON.parse(Buffer.from(response.Payload ?? []).toString() || 'null')
  if (response.FunctionError === undefined) return result
  throw new Error(`${FunctionName} failed: ${Failure.safeParse(result).data?.errorMessage ?? response.FunctionError}`)
}
