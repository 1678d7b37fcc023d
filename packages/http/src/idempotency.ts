import type { EndpointDefinition } from '@platform/contract/endpoint'
import type { Caller, IdempotentRequest, RelayCaller } from '@platform/core/caller'
import { validationFailed } from '@platform/core/error'
import { sha256 } from '@platform/core/id'
import { findStoredResponse, storeResponse, type StoredResponse } from '@platform/core/outbox/idempotency'
import type { Result } from './result.ts'
import { bytesOf, type GatewayEvent, type RequestHeaders } from './request.ts'

type AnyCaller = Caller | RelayCaller | undefined
type Handle<Who> = (caller: Who) => Result | Promise<Result>

/**
 * Handles a request with an `Idempotency-Key` once. Repeated requests receive the stored response, as does the loser of
 * a race. Errors are not stored, so that a corrected request can use the same key.
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
  const stored = await findStoredResponse(caller, request)
  if (stored !== undefined) return replay(stored)
  try {
    return await handleFirst(caller, request, handle)
  } catch (error) {
    const concurrent = await findStoredResponse(caller, request)
    if (concurrent === undefined) throw error
    return replay(concurrent)
  }
}

async function handleFirst(caller: Caller, request: IdempotentRequest, handle: Handle<Caller>): Promise<Result> {
  const result = await handle({ ...caller, idempotency: request })
  const { status, body } = result
  const concurrent = request.isStored ? undefined : await storeResponse(caller, request, { status, body })
  return concurrent === undefined ? result : replay(concurrent)
}

const replay = ({ status, body }: StoredResponse): Result => ({
  status,
  body,
  headers: { 'idempotency-replayed': 'true' },
})

type KeyedRequest = Omit<IdempotentRequest, 'organisationId'>

/** Throws `validation_failed` if the key is invalid. */
export function idempotencyKeyOf({ 'idempotency-key': key }: RequestHeaders): string | undefined {
  if (key === undefined || /^[\u0021-\u007e]{1,200}$/.test(key)) return key
  const message = 'must be 1 to 200 visible ASCII characters'
  throw validationFailed([{ in: 'header', path: '/idempotency-key', code: 'invalid_format', message }])
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
