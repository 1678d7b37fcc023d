import { setTimeout as delay } from 'node:timers/promises'
import {
  type FunctionConfiguration,
  GetFunctionCommand,
  InvokeCommand,
  type LambdaClient,
  ListVersionsByFunctionCommand,
} from '@aws-sdk/client-lambda'
import { isAws } from '@platform/core/aws/error-name'
import { TargetError } from './port.ts'

/** What the parts of the target work with. */
export interface LambdaControl {
  client: LambdaClient
  prefix: string
  alias: string
  /** Every function of the platform. */
  names: readonly string[]
  /** Between two looks at what is not ready. */
  pollMs: number
  /** How long a change may take before the update has to be tried again. */
  patienceMs: number
}

/** Lambda lets its control plane be asked some fifteen times a second. */
export const maxConcurrentCalls = 4

/** A function or a version as it is just now. One call. */
export async function findFunction(
  { client }: LambdaControl,
  FunctionName: string,
  Qualifier = '$LATEST',
): Promise<FunctionConfiguration> {
  const { Configuration = {} } = await client.send(new GetFunctionCommand({ FunctionName, Qualifier }))
  return Configuration
}

/** The published versions of a function, newest first. One call for every 50. */
export async function versionsOf({ client }: LambdaControl, FunctionName: string): Promise<FunctionConfiguration[]> {
  const found: FunctionConfiguration[] = []
  let Marker: string | undefined
  do {
    const answer = await client.send(new ListVersionsByFunctionCommand({ FunctionName, Marker }))
    found.push(...(answer.Versions ?? []))
    Marker = answer.NextMarker
  } while (Marker !== undefined)
  return found.filter(({ Version }) => Version !== '$LATEST').toSorted((a, b) => Number(b.Version) - Number(a.Version))
}

const invokeMs = 30_000

/** Runs a version and answers what it answers. Throws where it fails, and after 30 seconds. */
export async function invokeVersion(
  { client }: LambdaControl,
  FunctionName: string,
  Qualifier: string,
  event: unknown,
): Promise<unknown> {
  const abortSignal = AbortSignal.timeout(invokeMs)
  const Payload = Buffer.from(JSON.stringify(event))
  const command = new InvokeCommand({ FunctionName, Qualifier, Payload })
  const answer = await client.send(command, { abortSignal }).catch((cause: unknown) => {
    if (!abortSignal.aborted) throw cause
    throw new TargetError(`${FunctionName} does not answer within ${invokeMs / 1000} s.`, { cause })
  })
  const text = Buffer.from(answer.Payload ?? []).toString()
  if (answer.FunctionError !== undefined) throw new TargetError(`${FunctionName}: ${text.slice(0, 500)}`)
  return text === '' ? undefined : JSON.parse(text)
}

/**
 * Looks again until something is ready, soon at first and then at every `pollMs`; what takes too long goes on, and the next try
 * finds it further.
 */
export async function until<Found>(
  { pollMs, patienceMs }: LambdaControl,
  what: string,
  look: () => Promise<Found | undefined>,
): Promise<Found> {
  const endMs = performance.now() + patienceMs
  for (let pauseMs = pollMs / 8; ; pauseMs = Math.min(pollMs, pauseMs * 2)) {
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() > endMs) throw new TargetError(`${what} is not ready after ${patienceMs / 1000} s.`)
    await delay(pauseMs)
  }
}

const passing = [
  'TooManyRequestsException',
  'ThrottlingException',
  'ResourceConflictException',
  'PreconditionFailedException',
  'RequestTimeout',
  'RequestTimeoutException',
]

/** What it means that Lambda does not do something: what is wrong with the wish stays wrong, all else may pass. */
export function targetFailure(cause: unknown): unknown {
  if (!(cause instanceof Error) || cause instanceof TargetError) return cause
  const isOfAws = '$fault' in cause
  const isNetwork = cause.name === 'TimeoutError' || cause.name === 'AbortError' || 'code' in cause
  if (!isOfAws && !isNetwork) return cause
  const isFinal = isOfAws && cause.$fault === 'client' && !isAws(cause, ...passing)
  return new TargetError(`Lambda: ${cause.name}: ${cause.message}`.slice(0, 500), { isFinal, cause })
}
