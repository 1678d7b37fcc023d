import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

// New hashes cost as little as those of the fixtures, because tests create many users.
const { argon2 } = crypto
crypto.argon2 = (algorithm, parameters, callback) =>
  argon2(algorithm, { ...parameters, memory: 8, passes: 1 }, callback)
syncBuiltinESMExports()
