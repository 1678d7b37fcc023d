import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { now } from './clock.ts'
import { type Identity, storeStatementKeys } from './identity.ts'
import { isJsonObject, stringsIn } from './json.ts'
import { InvalidJws, decodeUnverifiedJws, verifyJws } from './jws.ts'
import { info, warn } from './log.ts'
import { warnOnError } from './report.ts'

const successorType = 'statement-key+jws'
// The platform keeps at most this number of successors.
const maxSuccessors = 10
// Servers sign with a replaced key for a few minutes, and a statement is valid for ten minutes.
const graceMs = 3_600_000

const unknownKeyWarning =
  'This relay does not know the key that the platform signs jobs with, so it claims no jobs. Issue a token with "plat cluster enrollment-token CLUSTER", and start the relay with it in PLAT_ENROLLMENT_TOKEN.'

/** A public key that verifies job statements. Only a replaced key has `trustedUntilMs`. */
export type StatementKey = JsonWebKey & { kid: string; trustedUntilMs?: number }

/** The public keys that verify job statements. Each successor of the pinned key is signed by its predecessor. */
export class StatementKeys {
  readonly #stateFolder: string
  #keys: StatementKey[]
  #isOutdated = false

  constructor(stateFolder: string, { statementKeys }: Identity) {
    this.#stateFolder = stateFolder
    this.#keys = statementKeys
  }

  get newestKid(): string | undefined {
    return this.#keys[0]?.kid
  }

  /** Whether the newest key does not lead to the key of the platform. The relay then claims no jobs. */
  get isOutdated(): boolean {
    return this.#isOutdated
  }

  get trustedKeys(): Map<string, KeyObject> {
    const validKeys = this.#keys.filter(({ trustedUntilMs }) => trustedUntilMs === undefined || trustedUntilMs > now())
    return new Map(validKeys.map((key) => [key.kid, keyObjectOf(key)]))
  }

  /** Learns the successors in a response from the platform. Known successors have no effect. */
  learn(successors: unknown): void {
    const previousKid = this.newestKid
    const isLearned = successors === undefined || (Array.isArray(successors) && this.#learnAll(stringsIn(successors)))
    if (!isLearned && !this.#isOutdated) warn(unknownKeyWarning)
    this.#isOutdated = !isLearned
    if (this.newestKid === previousKid) return
    info('The platform has replaced the key that signs jobs. This relay trusts the new one.')
    // If the key cannot be stored, the relay learns it again after a restart.
    warnOnError(() => storeStatementKeys(this.#stateFolder, this.#keys))
  }

  #learnAll(successors: string[]): boolean {
    try {
      const decodedSuccessors = successors
        .slice(0, maxSuccessors)
        .map((each) => ({ each, ...decodeUnverifiedJws(each) }))
      const firstIndex = decodedSuccessors.findIndex(({ header }) => header.kid === this.newestKid)
      // The response may contain only keys that the relay has already learned.
      if (firstIndex === -1)
        return decodedSuccessors.some(({ claims: { key } }) => isJsonObject(key) && key.kid === this.newestKid)
      for (const { each } of decodedSuccessors.slice(firstIndex)) this.#learnOne(each)
      return true
    } catch (error) {
      if (!(error instanceof InvalidJws)) throw error
      warn(`A key of the platform was rejected: ${error.message}.`)
      return false
    }
  }

  // Only the newest key may introduce a successor, because a replaced key may have leaked.
  #learnOne(successor: string): void {
    const [newestKey] = this.#keys
    const { key } = verifyJws(successor, successorType, new Map(newestKey && [[newestKey.kid, keyObjectOf(newestKey)]]))
    if (!isStatementKey(key)) throw new InvalidJws('it contains no key')
    const replacedKeys = newestKey ? [{ ...newestKey, trustedUntilMs: now() + graceMs }] : []
    this.#keys = [{ kty: 'OKP', crv: 'Ed25519', x: key.x, kid: key.kid }, ...replacedKeys]
  }
}

const keyObjectOf = (key: JsonWebKey): KeyObject => createPublicKey({ key, format: 'jwk' })

function isStatementKey(key: unknown): key is { kid: string; x: string } {
  if (!isJsonObject(key) || typeof key.kid !== 'string' || typeof key.x !== 'string') return false
  return /^[\w-]{1,100}$/.test(key.kid) && /^[\w-]{43}$/.test(key.x)
}
