import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { withFairQueue } from './hash-queue.ts'

/**
 * Passwords are hashed with argon2id: 19 MiB, two passes, one lane. The table stores
 * `argon2id$memory$passes$lanes$salt$hash`, with salt and hash in base64url.
 */

const memoryKiB = 19_456
const passes = 2
const lanes = 1
const tagBytes = 32

interface HashParameters {
  nonce: Buffer
  memory: number
  passes: number
  parallelism: number
}

const hash = (password: string, parameters: HashParameters): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const message = password.normalize('NFC')
    argon2('argon2id', { message, tagLength: tagBytes, ...parameters }, (error, tag) =>
      error ? reject(error) : resolve(tag),
    )
  })

const format = (salt: Buffer, tag: Buffer): string =>
  ['argon2id', memoryKiB, passes, lanes, salt.toString('base64url'), tag.toString('base64url')].join('$')

export async function hashPassword(password: string, queueKey: string): Promise<string> {
  const nonce = randomBytes(16)
  const parameters = { nonce, memory: memoryKiB, passes, parallelism: lanes }
  return format(nonce, await withFairQueue(queueKey, () => hash(password, parameters)))
}

/** Used if no hash is stored, for example for an unknown user, so that the response takes the same time. */
const dummyHash = format(randomBytes(16), randomBytes(tagBytes))

/** `begin` runs when the queue admits the comparison. If `begin` throws, the password is not compared. */
export async function passwordMatches(
  password: string,
  storedForm: string | undefined,
  queueKey: string,
  begin: () => Promise<void> = async () => {},
): Promise<boolean> {
  const [, memory, storedPasses, parallelism, salt = '', tag = ''] = (storedForm ?? dummyHash).split('$')
  const parameters = {
    nonce: Buffer.from(salt, 'base64url'),
    memory: Number(memory),
    passes: Number(storedPasses),
    parallelism: Number(parallelism),
  }
  const actual = await withFairQueue(queueKey, async () => {
    await begin()
    return hash(password, parameters)
  })
  const expectedTag = Buffer.from(tag, 'base64url')
  return actual.length === expectedTag.length && timingSafeEqual(actual, expectedTag) && storedForm !== undefined
}
