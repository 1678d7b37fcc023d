import { timingSafeEqual } from 'node:crypto'
import * as z from 'zod'
import { now } from '../../clock.ts'
import * as keys from '../../db/keys.ts'
import { create, get, remove, type WriteItem } from '../../db/table.ts'
import { transact } from '../../db/transact.ts'
import { type ProviderGrant, sealGrant, unsealGrant } from '../../accounts/provider-check.ts'
import { newSecret, sha256 } from '../../id.ts'

/**
 * A sign-in in progress is stored as an attempt, then as a code that is exchanged for tokens. The key contains the hash
 * of a secret that appears in URLs; a second secret binds the item to the browser.
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

const SignedIn = z.object({
  providerId: z.string(),
  userId: z.string(),
  organisationId: z.string(),
  hasKeptRoles: z.literal(true).optional(),
})
type SignedIn = z.infer<typeof SignedIn>

const Sealed = z.object({ grant: z.instanceof(Uint8Array).optional() })

const Binding = z.object({ browserHash: z.string(), expiresAtMs: z.number() })

const newBinding = (browser: string, seconds: number) => {
  const expiresAtMs = now() + seconds * 1000
  return { browserHash: sha256(browser), expiresAtMs, ttl: Math.ceil(expiresAtMs / 1000) + 3600 }
}

async function read(key: keys.Key, browser: string) {
  const item = await get(key)
  if (item === undefined) return undefined
  const { browserHash, expiresAtMs } = Binding.parse(item)
  const isBound = timingSafeEqual(Buffer.from(browserHash), Buffer.from(sha256(browser)))
  return isBound && expiresAtMs > now() ? item : undefined
}

/** `browser` is the secret that binds the attempt to the browser. */
export async function storeAttempt(attempt: Attempt): Promise<{ state: string; browser: string }> {
  const [state, browser] = [newSecret(), newSecret()]
  await transact([create(keys.signInAttempt(sha256(state)), { ...attempt, ...newBinding(browser, attemptSeconds) })])
  return { state, browser }
}

/** Returns undefined if the attempt is invalid, expired or already used. */
export async function consumeAttempt(state: string, browser: string, providerId: string): Promise<Attempt | undefined> {
  const key = keys.signInAttempt(sha256(state))
  const item = await read(key, browser)
  const attempt = item && Attempt.parse(item)
  if (attempt?.providerId !== providerId) return undefined
  const failure = await transact([remove(key, { pk: { present: true } })])
  return failure === undefined ? attempt : undefined
}

export async function storeCode(
  signedIn: SignedIn,
  grant: ProviderGrant | undefined,
  browser: string,
): Promise<string> {
  const code = newSecret()
  const user = { ...signedIn, ...sealGrant(grant, code) }
  await transact([create(keys.signInCode(sha256(code)), { ...user, ...newBinding(browser, codeSeconds) })])
  return code
}

/** Returns undefined if the code is invalid or expired. `consumeWrite` ensures that the code works only once. */
export async function readCode(
  code: string,
  browser: string,
): Promise<(SignedIn & { grant: ProviderGrant | undefined; consumeWrite: WriteItem }) | undefined> {
  const key = keys.signInCode(sha256(code))
  const item = await read(key, browser)
  if (item === undefined) return undefined
  const { grant } = Sealed.parse(item)
  return {
    ...SignedIn.parse(item),
    grant: unsealGrant(grant, code),
    consumeWrite: remove(key, { pk: { present: true } }),
  }
}
