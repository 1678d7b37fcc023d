import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { writeDurably } from './durable-file.ts'
import { invalidRequestError, notFoundError } from './errors.ts'
import { Secret } from './secret.ts'

/** Holds all secrets in memory. With a data folder, also writes them to a file before it acknowledges a change. */
export class SecretStore {
  /** Returns the seconds since 1970. */
  readonly now: () => number
  readonly #path: string | undefined
  #secrets: readonly Secret[] = []

  constructor(dataDir: string | undefined, nowMs: () => number) {
    this.now = () => nowMs() / 1000
    if (dataDir === undefined) return
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    this.#path = join(dataDir, 'secrets.json')
    if (existsSync(this.#path)) this.#secrets = z.array(Secret).parse(JSON.parse(readFileSync(this.#path, 'utf8')))
  }

  /** Omits secrets whose deletion is due. */
  all(): readonly Secret[] {
    return this.#secrets.filter((secret) => secret.DeletionDate === undefined || secret.DeletionDate > this.now())
  }

  /** Accepts a name, an ARN, or an ARN without its random suffix. */
  lookUp(id: string): Secret | undefined {
    const secrets = this.all()
    return (
      secrets.find((secret) => secret.Name === id || secret.ARN === id) ??
      secrets.find((secret) => secret.ARN.slice(0, -'-suffix'.length) === id)
    )
  }

  /** Throws if the secret does not exist or is marked for deletion. */
  find(id: string): Secret {
    const secret = this.lookUp(id)
    if (secret === undefined) throw notFoundError()
    if (secret.DeletedDate !== undefined) {
      throw invalidRequestError("You can't perform this operation on the secret because it was marked for deletion.")
    }
    return secret
  }

  /** Edits a copy, so that an error changes nothing. */
  change<Result>(secret: Secret, edit: (draft: Secret) => Result): Result {
    const draft = structuredClone(secret)
    const result = edit(draft)
    draft.LastChangedDate = this.now()
    this.#save(this.all().map((other) => (other === secret ? draft : other)))
    return result
  }

  add(secret: Secret): void {
    this.#save([...this.all(), secret])
  }

  remove(secret: Secret): void {
    this.#save(this.all().filter((other) => other !== secret))
  }

  #save(secrets: readonly Secret[]) {
    if (this.#path !== undefined) writeDurably(this.#path, JSON.stringify(secrets))
    this.#secrets = secrets
  }
}
