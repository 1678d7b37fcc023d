import { setTimeout as delay } from 'node:timers/promises'
import { type FunctionConfiguration, InvokeCommand } from '@aws-sdk/client-lambda'
import { isAws } from '@platform/core/aws/sdk'
import type { InstalledRelease } from '@platform/core/updates/record'
import type { LambdaControl } from '../../runtimes/lambda/control.ts'
import { TargetError } from './port.ts'

export interface AliasControl extends LambdaControl {
  alias: string
  names: readonly string[]
}

/** Lambda limits its control plane to about fifteen calls per second. */
export const maxConcurrentCalls = 4

/** Returns `<prefix>-gateway-modules` for the function `gateway/modules`. */
export const lambdaNameOf = (prefix: string, functionName: string): string =>
  `${prefix}-${functionName.replaceAll('/', '-')}`

const labelPattern = /^platform (\S+) (sha256:[0-9a-f]{64})$/

/** Returns the label of a release's versions; undefined for a deployed release, whose versions have no label. */
export const labelOf = ({ version, digest }: InstalledRelease): string | undefined =>
  digest === undefined ? undefined : `platform ${version} ${digest}`

/** Returns the release of a version, or undefined if no update has published it. */
export function releaseIn({
  Description = '',
}: FunctionConfiguration): Required<Pick<InstalledRelease, 'version' | 'digest'>> | undefined {
  const [, version, digest] = labelPattern.exec(Description) ?? []
  return version === undefined || digest === undefined ? undefined : { version, digest }
}

const invokeLimitMs = 30_000

/** Invokes a version of a function. Throws if it fails or does not respond within 30 seconds. */
export async function invokeVersion(
  { client }: LambdaControl,
  FunctionName: string,
  Qualifier: string,
  event: unknown,
): Promise<unknown> {
  const abortSignal = AbortSignal.timeout(invokeLimitMs)
  const Payload = Buffer.from(JSON.stringify(event))
  const command = new InvokeCommand({ FunctionName, Qualifier, Payload })
  const response = await client.send(command, { abortSignal }).catch((cause: unknown) => {
    if (!abortSignal.aborted) throw cause
    throw new TargetError(`${FunctionName} does not respond within ${invokeLimitMs / 1000} s.`, { cause })
  })
  const text = Buffer.from(response.Payload ?? []).toString()
  if (response.FunctionError !== undefined) throw new TargetError(`${FunctionName}: ${text.slice(0, 500)}`)
  return text === '' ? undefined : JSON.parse(text)
}

/**
 * Polls with exponential backoff; a pause is at most `pollMs`. Throws `TargetError` after `timeoutMs`. The change
 * continues in Lambda, and a retry waits for it again.
 */
export async function pollUntil<Found>(
  { pollMs, timeoutMs }: LambdaControl,
  description: string,
  read: () => Promise<Found | undefined>,
): Promise<Found> {
  const endMs = performance.now() + timeoutMs
  for (let pauseMs = pollMs / 8; ; pauseMs = Math.min(pollMs, pauseMs * 2)) {
    const foundValue = await read()
    if (foundValue !== undefined) return foundValue
    if (performance.now() > endMs) throw new TargetError(`${description} is not ready after ${timeoutMs / 1000} s.`)
    await delay(pauseMs)
  }
}

const transientErrors = [
  'TooManyRequestsException',
  'ThrottlingException',
  'ResourceConflictException',
  'PreconditionFailedException',
  'RequestTimeout',
  'RequestTimeoutException',
]

/** Converts errors of AWS and the network. Client errors are final, except throttling, conflicts and timeouts. */
export function targetFailure(cause: unknown): unknown {
  if (!(cause instanceof Error) || cause instanceof TargetError) return cause
  const isAwsError = '$fault' in cause
  const isNetwork = cause.name === 'TimeoutError' || cause.name === 'AbortError' || 'code' in cause
  if (!isAwsError && !isNetwork) return cause
  const isFinal = isAwsError && cause.$fault === 'client' && !isAws(cause, ...transientErrors)
  return new TargetError(`Lambda: ${cause.name}: ${cause.message}`.slice(0, 500), { isFinal, cause })
}
