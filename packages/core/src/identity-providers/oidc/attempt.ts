import { timingSafeEqual } from 'node:crypto'
import * as z from 'zod'
import { now } from '../../clock.ts'
import * as keys from '../../db/keys.ts'
import { create, get, remove, type WriteItem } from '../../db/table.ts'
import { transact } from '../../db/transact.ts'
import { newSecret, sha256 } from '../../id.ts'

/**
 * The state of a sign-in in progress: the attempt at a provider, then the code that is exchanged for tokens. Each is
 * stored under the hash of a secret that appears in URLs, and bound to a second secret in the browser.
 */

export const attemptSeconds = 600
const codeSeconds = 60

const Attempt = z.object({
  providerId: z.string(),
  nonce: z.string(),
  codeVerifier: z.string(),
  returnTo: z.string().optional(),
})
export type Attempt = z.infer<typeof Attempt>

const SignedIn = z.object({ providerId: z.string(), userId: z.string(), organisationId: z.string() })
type SignedIn = z.infer<typeof SignedIn>

const Binding = z.object({ browserHash: z.string(), expiresAtMs: z.number() })

const newBinding = (browser: string, seconds: number) => {
  const expiresAtMs = now() + seconds * 1000
  return { browserHash: sha256(browser), expiresAtMs, ttl: Math.ceil(expiresAtMs / 1000) + 3600 }
}

/** The stored value if it is valid for this browser. One call. */
async function read(key: keys.Key, browser: string) {
  const item = await get(key)
  if (item === undefined) return undefined
  const { browserHash, expiresAtMs } = Binding.parse(item)
  const isBound = timingSafeEqual(Buffer.from(browserHash), Buffer.from(sha256(browser)))
  return isBound && expiresAtMs > now() ? item : undefined
}

/** Stores an attempt; returns its state and the browser's secret. One call. */
export async function storeAttempt(attempt: Attempt): Promise<{ state: string; browser: string }> {
  const [state, browser] = [newSecret(), newSecret()]
  await transact([create(keys.signInAttempt(sha256(state)), { ...attempt, ...newBinding(browser, attemptSeconds) })])
  return { state, browser }
}

/** Consumes an attempt of this provider and browser; undefined if invalid. Two calls. */
export async function consumeAttempt(state: string, browser: string, providerId: string): Promise<Attempt | undefined> {
  const key = keys.signInAttempt(sha256(state))
  const item = await read(key, browser)
  const attempt = item && Attempt.parse(item)
  if (attempt?.providerId !== providerId) return undefined
  const failure = await transact([remove(key, { pk: { present: true } })])
  return failure === undefined ? attempt : undefined
}

/** Stores the signed-in user; returns a single-use code. One call. */
export async function storeCode({ providerId, userId, organisationId }: SignedIn, browser: string): Promise<string> {
  const code = newSecret()
  const user = { providerId, userId, organisationId }
  await transact([create(keys.signInCode(sha256(code)), { ...user, ...newBinding(browser, codeSeconds) })])
  return code
}

/** The user of a code, and the write that consumes it; undefined if invalid. One call. */
export async function readCode(
  code: string,
  browser: string,
): Promise<(SignedIn & { consumeWrite: WriteItem }) | undefined> {
  const key = keys.signInCode(sha256(code))
  const item = await read(key, browser)
  return item && { ...SignedIn.parse(item), consumeWrite: remove(key, { pk: { present: true } }) }
}
