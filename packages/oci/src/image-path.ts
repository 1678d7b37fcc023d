import { posix } from 'node:path'
import { RegistryError } from './error.ts'

/** Text of an image in a message: it may hold anything. */
export const quoted = (text: string): string => JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text)

/**
 * A path of an image, from its root and without a leading `/`; the root itself is the empty text. Throws where the
 * path leads upwards or no file system can hold it.
 */
export function imagePath(name: string): string {
  const parts = name.split('/').filter((part) => part !== '' && part !== '.')
  const isPath = !parts.includes('..') && !name.includes('\0') && parts.every((part) => Buffer.byteLength(part) <= 255)
  if (!isPath) throw new RegistryError('invalid', `The path ${quoted(name)} is none for an image.`)
  return parts.join('/')
}

/** The directory that a path is in. */
export const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))

/** Whether a path is in a directory, at whatever depth; everything is in the root. */
export const isBelow = (path: string, directory: string): boolean =>
  directory === '' || path.startsWith(`${directory}/`)

/** What an entry takes away of the layers below its own. */
export type Whiteout = { kind: 'path' | 'below'; path: string } | { kind: 'nothing' }

const prefix = '.wh.'

/** The whiteout that a path stands for (OCI image specification, layers); undefined where it is an ordinary path. */
export function whiteoutOf(path: string): Whiteout | undefined {
  const parent = parentOf(path)
  const name = path.slice(parent === '' ? 0 : parent.length + 1)
  if (!name.startsWith(prefix)) return undefined
  const hidden = name.slice(prefix.length)
  if (hidden === '.wh..opq') return { kind: 'below', path: parent }
  // Bookkeeping of a file system that once made layers.
  if (hidden.startsWith(prefix)) return { kind: 'nothing' }
  if (['', '.', '..'].includes(hidden))
    throw new RegistryError('invalid', `The whiteout ${quoted(path)} names nothing.`)
  return { kind: 'path', path: parent === '' ? hidden : `${parent}/${hidden}` }
}

/**
 * What a symlink in a directory says, so that it never leads out: up from its directory, no higher than the root, and
 * then down. An absolute one becomes such a one too, as the image's root is not the system's for who reads it from outside.
 */
export function containedLink(directory: string, target: string): string {
  if (target === '' || target.includes('\0'))
    throw new RegistryError('invalid', `The link ${quoted(target)} is broken.`)
  const aim = posix.join('/', target.startsWith('/') ? '' : directory, target)
  return posix.relative(`/${directory}`, aim) || '.'
}
