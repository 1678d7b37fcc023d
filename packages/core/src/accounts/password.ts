import { argon2, type Argon2Parameters, randomBytes, timingSafeEqual } from 'node:crypto'
import { withFairQueue } from './hash-queue.ts'

/** Passwords: argon2id with 19 MiB, two passes, one lane. Stored as `argon2id$m$t$p$salt$hash`, base64url. */

const memoryKiB = 19_456
const passes = 2
const lanes = 1
const tagBytes = 32

async function hash(
  who: string,
  password: string,
  nonce: Uint8Array,
  memory: number,
  time: number,
  parallelism: number,
): Promise<Buffer> {
  const parameters: Argon2Parameters = {
    message: password.normalize('NFC'),
    nonce,
    parallelism,
    memory,
    passes: time,
    tagLength: tagBytes,
  }
  const work = (): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      argon2('argon2id', parameters, (error, tag) => (error ? reject(error) : resolve(tag)))
    })
  return withFairQueue(who, work)
}

/** The stored form of a password. About 30 ms of one core; `who` is the key of the fair queue. */
export async function hashPassword(password: string, who: string): Promise<string> {
  const salt = randomBytes(16)
  const tag = await hash(who, password, salt, memoryKiB, passes, lanes)
  return ['argon2id', memoryKiB, passes, lanes, salt.toString('base64url'), tag.toString('base64url')].join('$')
}

/** A dummy hash, so that unknown users take the same time. */
const dummyCredential = [
  'argon2id',
  memoryKiB,
  passes,
  lanes,
  randomBytes(16).toString('base64url'),
  randomBytes(tagBytes).toString('base64url'),
].join('$')

/** Whether a password matches the stored form. Without one returns false after the same work. */
export async function passwordFits(password: string, storedForm: string | undefined, who: string): Promise<boolean> {
  const [, memory, time, parallelism, salt, tag] = (storedForm ?? dummyCredential).split('$')
  const actual = await hash(
    who,
    password,
    Buffer.from(salt ?? '', 'base64url'),
    Number(memory),
    Number(time),
    Number(parallelism),
  )
  const expected = Buffer.from(tag ?? '', 'base64url')
  return actual.length === expected.length && timingSafeEqual(actual, expected) && storedForm !== undefined
}
