// Idempotency keys of POST requests whose outcome is unknown, by a digest of the URL and body.
const pendingKeys = new Map<string, { key: string; atMs: number }>()

// Within this time the same POST is treated as a retry, later as a new request.
const retryWindowMs = 5 * 60_000

// The platform sends these responses before it checks the idempotency key.
const statusesBeforeKeyCheck = new Set([401, 403, 429])

export interface IdempotentCall {
  key: string
  /** Call it with the response, or with undefined if there was none. */
  settle: (response: Response | undefined) => void
}

/** Chooses the idempotency key of a POST: the key of the same recent POST if its outcome is unknown, else a new one. */
export async function withIdempotencyKey(request: Request): Promise<IdempotentCall> {
  const digest = await digestOf(request.clone())
  const pendingKey = pendingKeys.get(digest)
  const key = pendingKey !== undefined && Date.now() - pendingKey.atMs < retryWindowMs ? pendingKey.key : newKey()
  const settle = (response: Response | undefined): void => {
    // After a server error the request may have been executed, so a retry must use the same key.
    if (response === undefined || response.status >= 500) pendingKeys.set(digest, { key, atMs: Date.now() })
    // A rejection before the key check does not show whether an earlier attempt was executed, so its key is kept.
    else if (!statusesBeforeKeyCheck.has(response.status)) pendingKeys.delete(digest)
  }
  return { key, settle }
}

// Only a digest is stored, because bodies may contain secrets. Without TLS there is no `crypto.subtle`, so every POST
// has a new key.
async function digestOf(request: Request): Promise<string> {
  if (!('subtle' in crypto)) return newKey()
  const bytes = new TextEncoder().encode(`${request.url} ${await request.text()}`)
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)).join()
}

// `randomUUID` does not exist without TLS, but the request must still reach the platform, which explains the error.
export const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint32Array(4)), (word) => word.toString(36)).join('-')
