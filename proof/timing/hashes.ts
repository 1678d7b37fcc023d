import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

/** How many passwords this process has hashed. Load this before anything of the platform. */
let count = 0

const hash = crypto.argon2
crypto.argon2 = (...given: Parameters<typeof hash>) => {
  count++
  hash(...given)
}
syncBuiltinESMExports()

export const hashes = (): number => count
