import { addressOf, arnOf, latestVersion } from './address.ts'
import { chosenVersion } from './aliases.ts'
import { maximumPayloadBytes } from './exchange.ts'
import type { Revision } from './function.ts'
import { functionOf, type Lambda, type NamedFunction } from './lambda.ts'
import { activateLater } from './readiness.ts'
import { conflict, invalidValue, notFound, notJson, requestTooLarge } from './refusals.ts'

export interface InvokeRequest extends NamedFunction {
  type: string
  payload: Buffer
}

export interface Invoked {
  status: number
  payload: Buffer
  isError: boolean
  version: string
}

export async function invoke(lambda: Lambda, request: InvokeRequest): Promise<Invoked> {
  const { type, payload } = request
  if (payload.length > maximumPayloadBytes) throw requestTooLarge(maximumPayloadBytes)
  if (!isJson(payload)) throw notJson()
  if (type === 'Event') throw invalidValue('Asynchronous invocations are not supported.')
  const revision = invokedRevision(lambda, request)
  requireReady(lambda, revision)
  const { version } = revision
  if (type === 'DryRun') return { status: 204, payload: Buffer.alloc(0), isError: false, version }
  return { status: 200, version, ...(await lambda.fleet.invoke(revision, crypto.randomUUID(), payload)) }
}

function isJson(payload: Buffer): boolean {
  try {
    JSON.parse(payload.toString() || '{}')
    return true
  } catch {
    return false
  }
}

function invokedRevision(lambda: Lambda, request: NamedFunction): Revision {
  const found = functionOf(lambda, request)
  const { name, qualifier = latestVersion } = addressOf(request.FunctionName, request.Qualifier)
  const alias = found.aliases.get(qualifier)
  const version = alias === undefined ? qualifier : chosenVersion(alias, lambda.random())
  const revision = version === latestVersion ? found.served : found.versions.get(version)
  if (revision === undefined) throw notFound(arnOf(name, qualifier))
  return revision
}

/** An invocation of an inactive function fails and reactivates it. */
function requireReady(lambda: Lambda, revision: Revision): void {
  const { functionName, version, state } = revision
  if (state === 'Active') return
  if (state === 'Inactive') {
    revision.state = 'Pending'
    activateLater(lambda, revision)
  }
  throw conflict(`${arnOf(functionName, version)} is in the state ${state} and cannot be invoked.`)
}
