import { type EndpointDefinition, isIdempotent } from '@platform/contract/endpoint'
import type { Caller, RelayCaller } from '@platform/core/caller'
import { validationFailed } from '@platform/core/error'
import { sha256 } from '@platform/core/id'
import {
  findStoredResponse,
  storeResponse,
  storeResponseWrite,
  type StoredResponse,
  type IdempotentRequest,
} from '@platform/core/outbox/idempotency'
import type { Result } from './result.ts'
import { bytesOf, type GatewayEvent } from './event.ts'

type AnyCaller = Caller | RelayCaller | undefined
type Handle<Who> = (caller: Who) => Result | Promise<Result>

/**
 * Answers a request with an `Idempotency-Key` once (D28): a repeat gets the first answer, and so does a request that
 * lost a race against its own repeat. Refusals are not kept: what was wrong may be corrected under the same key. Costs one
 * call before, and one after where the verb did not keep its answer.
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
    return await firstAnswer(endpoint, caller, request, handle)
  } catch (error) {
    const first = await findStoredResponse(caller, request)
    if (first === undefined) throw error
    return replayed(first)
  }
}

async function firstAnswer(
  endpoint: EndpointDefinition,
  caller: Caller,
  request: IdempotentRequest,
  handle: Handle<Caller>,
): Promise<Result> {
  let isKept = false
  const once = {
    step: (body: unknown) => storeResponseWrite(caller, request, { status: successOf(endpoint), body }),
    happened: () => {
      isKept = true
    },
  }
  const answer = await handle({ ...caller, once })
  const faster = isKept ? undefined : await storeResponse(caller, request, { status: answer.status, body: answer.body })
  return faster === undefined ? answer : replayed(faster)
}

const replayed = ({ status, body }: StoredResponse): Result => ({
  status,
  body,
  headers: { 'idempotency-replayed': 'true' },
})

function repeatable(endpoint: EndpointDefinition, event: GatewayEvent): IdempotentRequest | undefined {
  const key = event.headers['idempotency-key']
  if (key === undefined || !isIdempotent(endpoint)) return undefined
  if (!/^[\u0021-\u007e]{1,200}$/.test(key)) {
    const message = 'must be 1 to 200 visible characters of ASCII'
    throw validationFailed([{ in: 'header', path: '/idempotency-key', code: 'invalid_format', message }])
  }
  const body = sha256(bytesOf(event))
  return { key, fingerprint: sha256(JSON.stringify([endpoint.method, event.rawPath, event.rawQueryString, body])) }
}

/** A POST has one success; its status is that of every kept answer. */
const successOf = ({ responses }: EndpointDefinition): number => Number(Object.keys(responses)[0] ?? 200)
