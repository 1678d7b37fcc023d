import { InvokeCommand, type LambdaClient } from '@aws-sdk/client-lambda'

/** Returns the function name and the alias in the ARN of an alias, or an empty array for another ARN. */
export const functionOf = (arn: string): string[] => /:function:([^:]+):([^:]+)$/.exec(arn)?.slice(1) ?? []

export async function invokeFunction(
  client: LambdaClient,
  FunctionName: string,
  event: unknown,
  Qualifier?: string,
): Promise<unknown> {
  const command = new InvokeCommand({ FunctionName, Qualifier, Payload: Buffer.from(JSON.stringify(event)) })
  const { Payload = new Uint8Array(), FunctionError } = await client.send(command)
  const text = Buffer.from(Payload).toString()
  if (FunctionError !== undefined) throw new Error(`${FunctionName} failed: ${text}`)
  return JSON.parse(text || 'null')
}
