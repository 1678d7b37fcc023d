import { argon2, type Argon2Parameters, randomBytes, timingSafeEqual } from 'node:crypto'
import { fault } from './fault.ts'

/** Passwords: argon2id with 19 MiB, two passes, one lane (D17). Stored as `argon2id$m$t$p$salt$hash`, base64url. */

const memoryKiB = 19_456
const passes = 2
const lanes = 1
const tagBytes = 32

/** More at once would let a sign-in flood take the whole process. */
const hashesAtOnce = 4
let hashing = 0

async function hash(
  password: string,
  nonce: Uint8Array,
  memory: number,
  time: number,
  parallelism: number,
): Promise<Buffer> {
  if (hashing >= hashesAtOnce) throw fault('rate_limited', { retryAfterSeconds: 1 })
  const parameters: Argon2Parameters = {
    message: password.normalize('NFC'),
    nonce,
    parallelism,
    memory,
    passes: time,
    tagLength: tagBytes,
  }
  hashing++
  try {
    return await new Promise((resolve, reject) => {
      argon2('argon2id', parameters, (error, tag) => (error ? reject(error) : resolve(tag)))
    })
  } finally {
    hashing--
  }
}

/** The stored form of a password. About 30 ms of one core. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16)
  const tag = await hash(password, salt, memoryKiB, passes, lanes)
  return ['argon2id', memoryKiB, passes, lanes, salt.toString('base64url'), tag.toString('base64url')].join('$')
}

/** What an unknown user is measured against, so that it costs the same time. */
const nobody = [
  'argon2id',
  memoryKiB,
  passes,
  lanes,
  randomBytes(16).toString('base64url'),
  randomBytes(tagBytes).toString('base64url'),
].join('$')

/** Whether a password fits the stored form. Without one the answer is false, after the same work. */
export async function passwordFits(password: string, storedForm: string | undefined): Promise<boolean> {
  const [, memory, time, parallelism, salt, tag] = (storedForm ?? nobody).split('$')
  const actual = await hash(
    password,
    Buffer.from(salt ?? '', 'base64url'),
    Number(memory),
    Number(time),
    Number(parallelism),
  )
  const expected = Buffer.from(tag ?? '', 'base64url')
  return actual.length === expected.length && timingSafeEqual(actual, expected) && storedForm !== undefined
}
