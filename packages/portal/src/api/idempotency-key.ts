/** Keys of POSTs whose answer was lost, by what was sent. */
const unanswered = new Map<string, { key: string; atMs: number }>()

/** Whoever sends the same again within this time means the same; later it may well be meant to happen again. */
const sameMs = 5 * 60_000

/** Who is not known, may not do it, or asks too often: said before the platform looks at the key. */
const atTheDoor = new Set([401, 403, 429])

/** What a POST is known by. */
export interface IdempotentCall {
  /** The value of its `Idempotency-Key`. */
  key: string
  /** Hears what became of it; undefined: no answer came. */
  settle: (response: Response | undefined) => void
}

/**
 * The key under which the platform does a POST once, however often it is sent (D28): a fresh one, unless the same was sent
 * just now and nobody knows what became of it.
 */
export async function withIdempotencyKey(request: Request): Promise<IdempotentCall> {
  const sent = await digestOf(request.clone())
  const before = unanswered.get(sent)
  const key = before !== undefined && Date.now() - before.atMs < sameMs ? before.key : freshKey()
  const settle = (response: Response | undefined): void => {
    // A platform that failed, or took too long for a gateway, may have done its part.
    if (response === undefined || response.status >= 500) unanswered.set(sent, { key, atMs: Date.now() })
    // Refused before it was looked at, it says nothing of what became of it before.
    else if (!atTheDoor.has(response.status)) unanswered.delete(sent)
  }
  return { key, settle }
}

/** Bodies hold secrets: none is kept. Without TLS browsers compute no digest, and each POST is another one. */
async function digestOf(request: Request): Promise<string> {
  if (!('subtle' in crypto)) return freshKey()
  const bytes = new TextEncoder().encode(`${request.url} ${await request.text()}`)
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)).join()
}

/** `randomUUID` is missing, too, where a page came without TLS: there the platform itself says what is wrong. */
const freshKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('-')
