import { TargetError } from '@platform/worker/updates/target/port'
import { unzipSync } from 'fflate'

const maxBytes = 50 * 1024 * 1024
const maxFiles = 1000

/** Path below the folder of its function → content. */
export type Files = ReadonlyMap<string, Uint8Array>

/**
 * Links become plain files and are never followed. Throws `TargetError` for a zip that is broken, too large or without
 * `index.mjs`, and for a path outside its folder.
 */
export function unpack(zip: Uint8Array): Files {
  let totalBytes = 0
  let fileCount = 0
  const check = ({ name, originalSize }: { name: string; originalSize: number }): boolean => {
    totalBytes += originalSize
    fileCount += 1
    if (totalBytes > maxBytes || fileCount > maxFiles)
      throw invalidZipError(`it has more than ${maxBytes} bytes or ${maxFiles} files`)
    if (!isSafePath(name))
      throw invalidZipError(`it has a path outside its folder: ${JSON.stringify(name.slice(0, 100))}`)
    return !name.endsWith('/')
  }
  const entries = new Map(Object.entries(unzip(zip, check)))
  if (!entries.has('index.mjs')) throw invalidZipError('it has no index.mjs')
  return entries
}

function unzip(zip: Uint8Array, filter: NonNullable<Parameters<typeof unzipSync>[1]>['filter'] & object) {
  try {
    return unzipSync(zip, { filter })
  } catch (cause) {
    throw cause instanceof TargetError ? cause : invalidZipError('it is broken', cause)
  }
}

/** Rejects backslashes, colons, control characters, and empty or dot segments on every operating system. */
const isSafePath = (name: string): boolean =>
  // oxlint-disable-next-line no-control-regex -- the pattern must match control characters
  !/[\\:\u0000-\u001f]/.test(name) &&
  name
    .replace(/\/$/, '')
    .split('/')
    .every((part) => part !== '' && part !== '.' && part !== '..')

const invalidZipError = (reason: string, cause?: unknown): TargetError =>
  new TargetError(`The zip of a function is invalid: ${reason}.`, { isFinal: true, cause })
