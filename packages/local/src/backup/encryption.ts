import { isUtf8 } from 'node:buffer'
import { createCipheriv, createDecipheriv, randomBytes, scrypt } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { BackupError } from './manifest.ts'

/**
 * An encrypted backup consists of a header and chunks. The header contains a format identifier and a random salt. Each
 * chunk is encrypted with AES-256-GCM. Its nonce contains a counter, and the last byte of the nonce marks the last
 * chunk, so that reordered, missing and truncated chunks are detected.
 */

const magicBytes = Buffer.from('platform-backup-aes-256-gcm-1\n')
const saltBytes = 32
const headerBytes = magicBytes.length + saltBytes
const chunkBytes = 65_536
const tagBytes = 16
/** Each guess of the passphrase takes 128 MiB of memory. */
const scryptOptions = { N: 2 ** 17, r: 8, p: 1, maxmem: 2 ** 28 }
const minPassphraseLength = 12

/**
 * Reads a passphrase, without the line break at the end of the file. Throws `BackupError` if the file cannot be read,
 * or the passphrase is not UTF-8 or too short.
 */
export async function readPassphrase(path: string): Promise<string> {
  const bytes = await readFile(path).catch((error: unknown) => {
    throw new BackupError(`The passphrase cannot be read from ${path} (PLAT_BACKUP_PASSPHRASE_FILE).`, { cause: error })
  })
  if (!isUtf8(bytes)) throw new BackupError(`The passphrase in ${path} must be text in UTF-8.`)
  const passphrase = bytes.toString().replace(/\r?\n$/, '')
  if (passphrase.length >= minPassphraseLength) return passphrase
  throw new BackupError(`The passphrase in ${path} must have at least ${minPassphraseLength} characters.`)
}

const derive = promisify<string, Buffer, number, object, Buffer>(scrypt)

const keyFor = (passphrase: string, salt: Buffer): Promise<Buffer> =>
  derive(passphrase.normalize('NFC'), salt, 32, scryptOptions)

function nonceOf(index: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12)
  nonce.writeUIntBE(index, 4, 6)
  nonce[11] = isLast ? 1 : 0
  return nonce
}

/** Splits a stream into chunks of `size` bytes. Only the last chunk may be shorter. */
async function* chunksOf(
  source: AsyncIterable<Buffer>,
  size: number,
): AsyncGenerator<{ bytes: Buffer; isLast: boolean }> {
  let pendingBytes = Buffer.alloc(0)
  for await (const part of source) {
    pendingBytes = Buffer.concat([pendingBytes, part])
    for (; pendingBytes.length > size; pendingBytes = pendingBytes.subarray(size)) {
      yield { bytes: pendingBytes.subarray(0, size), isLast: false }
    }
  }
  yield { bytes: pendingBytes, isLast: true }
}

export const encryptWith = (passphrase: string) =>
  async function* encrypt(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    const salt = randomBytes(saltBytes)
    const key = await keyFor(passphrase, salt)
    yield Buffer.concat([magicBytes, salt])
    let index = 0
    for await (const { bytes, isLast } of chunksOf(source, chunkBytes)) {
      const cipher = createCipheriv('aes-256-gcm', key, nonceOf(index++, isLast))
      yield Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
    }
  }

/**
 * Returns a transform for `pipeline` that decrypts an encrypted backup and passes an unencrypted one through. The
 * transform throws `BackupError` if an encrypted backup is damaged, or the passphrase is wrong, missing or not needed.
 */
export const decryptWith = (passphrase: string | undefined) =>
  async function* decrypt(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    const parts = source[Symbol.asyncIterator]()
    const start = await readStart(parts)
    const isEncrypted = start.subarray(0, magicBytes.length).equals(magicBytes)
    const rest = { [Symbol.asyncIterator]: () => prepend(start, parts) }
    if (!isEncrypted && passphrase !== undefined) {
      throw new BackupError('The backup is not encrypted. To restore it, unset PLAT_BACKUP_PASSPHRASE_FILE.')
    }
    if (!isEncrypted) yield* rest
    else if (passphrase === undefined) {
      throw new BackupError('The backup is encrypted. Set PLAT_BACKUP_PASSPHRASE_FILE to the file with its passphrase.')
    } else yield* decryptChunks(start, parts, passphrase)
  }

async function readStart(parts: AsyncIterator<Buffer>): Promise<Buffer> {
  let start = Buffer.alloc(0)
  while (start.length < headerBytes) {
    const { done, value } = await parts.next()
    if (done === true) return start
    start = Buffer.concat([start, value])
  }
  return start
}

async function* prepend(start: Buffer, parts: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield start
  yield* { [Symbol.asyncIterator]: () => parts }
}

async function* decryptChunks(start: Buffer, parts: AsyncIterator<Buffer>, passphrase: string): AsyncGenerator<Buffer> {
  const key = await keyFor(passphrase, start.subarray(magicBytes.length, headerBytes))
  let index = 0
  for await (const { bytes, isLast } of chunksOf(prepend(start.subarray(headerBytes), parts), chunkBytes + tagBytes)) {
    yield openChunk(key, { bytes, isLast, index: index++ })
  }
}

function openChunk(key: Buffer, { bytes, isLast, index }: { bytes: Buffer; isLast: boolean; index: number }): Buffer {
  try {
    const end = Math.max(0, bytes.length - tagBytes)
    const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(index, isLast), { authTagLength: tagBytes })
    decipher.setAuthTag(bytes.subarray(end))
    return Buffer.concat([decipher.update(bytes.subarray(0, end)), decipher.final()])
  } catch (error) {
    const reason =
      index === 0
        ? 'The passphrase is wrong, or the backup is damaged'
        : 'The backup is damaged: it was changed or cut off'
    throw new BackupError(`${reason}. Nothing was restored.`, { cause: error })
  }
}
