import type { EndpointDefinition } from '@platform/contract/endpoint'
import type { Caller, IdempotentRequest, RelayCaller } from '@platform/core/caller'
import { validationFailedError } from '@platform/core/error'
import { sha256 } from '@platform/core/id'
import { findStoredResponse, storeResponse, type StoredResponse } from '@platform/core/outbox/idempotency'
import type { Result } from './result.ts'
import { bytesOf, type GatewayEvent, type RequestHeaders } from './request.ts'

type AnyCaller = Caller | RelayCaller | undefined
type Handle<CallerType> = (caller: CallerType) => Result | Promise<Result>

/**
 * Handles a request. If a user sends an `Idempotency-Key`, repeated and concurrent requests receive the response that
 * was stored first. Errors are not stored, so that a corrected request can use the same key.
 */
export async function withIdempotency(
  endpoint: EndpointDefinition,
  event: GatewayEvent,
  caller: AnyCaller,
  handle: Handle<AnyCaller>,
): Promise<Result> {
  const keyedRequest = keyedRequestOf(endpoint, event)
  if (keyedRequest === undefined || caller?.kind !== 'user') return handle(caller)
  const request = { ...keyedRequest, organisationId: caller.organisationId }
  const storedResponse = await findStoredResponse(caller, request)
  if (storedResponse !== undefined) return replay(storedResponse)
  try {
    return await handleFirst(caller, request, handle)
  } catch (error) {
    const concurrentResponse = await findStoredResponse(caller, request)
    if (concurrentResponse === undefined) throw error
    return replay(concurrentResponse)
  }
}

async function handleFirst(caller: Caller, request: IdempotentRequest, handle: Handle<Caller>): Promise<Result> {
  const result = await handle({ ...caller, idempotency: request })
  const { status, body } = result
  const concurrentResponse = request.isStored ? undefined : await storeResponse(caller, request, { status, body })
  return concurrentResponse === undefined ? result : replay(concurrentResponse)
}

const replay = ({ status, body }: StoredResponse): Result => ({
  status,
  body,
  headers: { 'idempotency-replayed': 'true' },
})

type KeyedRequest = Omit<IdempotentRequest, 'organisationId'>

/** Returns the idempotency key, if any. Throws `validation_failed` if it is invalid. */
export function idempotencyKeyOf({ 'idempotency-key': key }: RequestHeaders): string | undefined {
  if (key === undefined || /^[\u0021-\u007e]{1,200}$/.test(key)) return key
  const message = 'must be 1 to 200 visible ASCII characters'
  throw validationFailedError([{ in: 'header', path: '/idempotency-key', code: 'invalid_format', message }])
}

function keyedRequestOf(endpoint: EndpointDefinition, event: GatewayEvent): KeyedRequest | undefined {
  const key = idempotencyKeyOf(event.headers)
  if (key === undefined) return undefined
  const body = sha256(bytesOf(event))
  const { method } = event.requestContext.http
  const fingerprint = sha256(JSON.stringify([method, event.rawPath, event.rawQueryString, body]))
  return { key, fingerprint, status: successStatusOf(endpoint) }
}

// The contract defines one success status for each POST endpoint.
const successStatusOf = ({ responses }: EndpointDefinition): number => Number(Object.keys(responses)[0] ?? 200)
