/** Idempotency keys of POSTs without a definite response, by their content. */
const pendingKeys = new Map<string, { key: string; atMs: number }>()

/** The same POST within this time is a retry; later it is a new request. */
const retryWindowMs = 5 * 60_000

/** These responses are sent before the platform checks the idempotency key. */
const statusesBeforeKeyCheck = new Set([401, 403, 429])

export interface IdempotentCall {
  /** The value of `Idempotency-Key`. */
  key: string
  /** Reports the response; undefined if there was none. */
  settle: (response: Response | undefined) => void
}

/**
 * Chooses the idempotency key of a POST: a new one, or the previous one if the same POST was sent recently and its
 * outcome is unknown.
 */
export async function withIdempotencyKey(request: Request): Promise<IdempotentCall> {
  const digest = await digestOf(request.clone())
  const pending = pendingKeys.get(digest)
  const key = pending !== undefined && Date.now() - pending.atMs < retryWindowMs ? pending.key : newKey()
  const settle = (response: Response | undefined): void => {
    // After a server error the request may have been executed.
    if (response === undefined || response.status >= 500) pendingKeys.set(digest, { key, atMs: Date.now() })
    // A rejection before the key check does not reveal the outcome of an earlier attempt.
    else if (!statusesBeforeKeyCheck.has(response.status)) pendingKeys.delete(digest)
  }
  return { key, settle }
}

/** Stores a digest only, because bodies contain secrets. Without TLS there is no digest, so every POST is new. */
async function digestOf(request: Request): Promise<string> {
  if (!('subtle' in crypto)) return newKey()
  const bytes = new TextEncoder().encode(`${request.url} ${await request.text()}`)
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)).join()
}

/** `randomUUID` does not exist without TLS; there the platform itself explains the error. */
const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint32Array(4)), (word) => word.toString(36)).join('-')
