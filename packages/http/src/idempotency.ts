import type { EndpointDefinition } from '@platform/contract/endpoint'
import type { Caller, IdempotentRequest, RelayCaller } from '@platform/core/caller'
import { validationFailed } from '@platform/core/error'
import { sha256 } from '@platform/core/id'
import { findStoredResponse, storeResponse, type StoredResponse } from '@platform/core/outbox/idempotency'
import type { Result } from './result.ts'
import { bytesOf, type GatewayEvent } from './request.ts'

type AnyCaller = Caller | RelayCaller | undefined
type Handle<Who> = (caller: Who) => Result | Promise<Result>

/**
 * Handles a request with an `Idempotency-Key` once. Repeats receive the stored response, also after losing a race.
 * Errors are not stored, so that a corrected request may reuse the key. One call before, and one after if the use case
 * stored no response.
 */
export async function withIdempotency(
  endpoint: EndpointDefinition,
  event: GatewayEvent,
  caller: AnyCaller,
  handle: Handle<AnyCaller>,
): Promise<Result> {
  const request = repeatable(endpoint, event)
  if (request === undefined || caller?.kind !== 'user') return handle(caller)
  const known = await findStoredResponse(caller, request)
  if (known !== undefined) return replayed(known)
  try {
    return await firstAnswer(caller, request, handle)
  } catch (error) {
    const first = await findStoredResponse(caller, request)
    if (first === undefined) throw error
    return replayed(first)
  }
}

async function firstAnswer(caller: Caller, request: IdempotentRequest, handle: Handle<Caller>): Promise<Result> {
  const answer = await handle({ ...caller, idempotency: request })
  const { status, body } = answer
  const faster = request.isStored ? undefined : await storeResponse(caller, request, { status, body })
  return faster === undefined ? answer : replayed(faster)
}

const replayed = ({ status, body }: StoredResponse): Result => ({
  status,
  body,
  headers: { 'idempotency-replayed': 'true' },
})

function repeatable(endpoint: EndpointDefinition, event: GatewayEvent): IdempotentRequest | undefined {
  const key = event.headers['idempotency-key']
  if (key === undefined) return undefined
  if (!/^[\u0021-\u007e]{1,200}$/.test(key)) {
    const message = 'must be 1 to 200 visible characters of ASCII'
    throw validationFailed([{ in: 'header', path: '/idempotency-key', code: 'invalid_format', message }])
  }
  const body = sha256(bytesOf(event))
  const { method } = event.requestContext.http
  const fingerprint = sha256(JSON.stringify([method, event.rawPath, event.rawQueryString, body]))
  return { key, fingerprint, status: successOf(endpoint) }
}

/** A POST has one success status, which every stored response has. */
const successOf = ({ responses }: EndpointDefinition): number => Number(Object.keys(responses)[0] ?? 200)
