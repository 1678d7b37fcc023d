import { posix } from 'node:path'
import { RegistryError } from './error.ts'

export const quote = (text: string): string => JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text)

/**
 * Normalizes a path to be relative to the image root, without a leading `/`. The root itself is the empty string.
 * Throws `RegistryError` if the path contains `..` or is invalid in file systems (a NUL byte, a component of more than
 * 255 bytes).
 */
export function normalizePath(name: string): string {
  const parts = name.split('/').filter((part) => part !== '' && part !== '.')
  const isPath = !parts.includes('..') && !name.includes('\0') && parts.every((part) => Buffer.byteLength(part) <= 255)
  if (!isPath) throw new RegistryError('invalid', `The path ${quote(name)} is invalid in an image.`)
  return parts.join('/')
}

export const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))

/** Whether a path is below a directory, at any depth. Every path is below the root. */
export const isBelow = (path: string, directory: string): boolean =>
  directory === '' || path.startsWith(`${directory}/`)

/** The content of lower layers that an entry removes. */
export type Whiteout = { kind: 'path' | 'below'; path: string } | { kind: 'nothing' }

const whiteoutPrefix = '.wh.'

/**
 * Parses a whiteout (OCI image specification, layers); undefined for an ordinary path. Throws `RegistryError` if it
 * names no path.
 */
export function whiteoutOf(path: string): Whiteout | undefined {
  const parent = parentOf(path)
  const name = path.slice(parent === '' ? 0 : parent.length + 1)
  if (!name.startsWith(whiteoutPrefix)) return undefined
  const hiddenName = name.slice(whiteoutPrefix.length)
  if (hiddenName === '.wh..opq') return { kind: 'below', path: parent }
  // Metadata of AUFS, which formerly created layers.
  if (hiddenName.startsWith(whiteoutPrefix)) return { kind: 'nothing' }
  if (['', '.', '..'].includes(hiddenName))
    throw new RegistryError('invalid', `The whiteout ${quote(path)} names nothing.`)
  return { kind: 'path', path: parent === '' ? hiddenName : `${parent}/${hiddenName}` }
}

/**
 * Rewrites the target of a symlink so that it stays inside the image: up from its directory, at most to the image root,
 * and then down. An absolute target becomes relative, because the image root is not the file system root for readers
 * outside of the image.
 */
export function confineLinkTarget(directory: string, target: string): string {
  if (target === '' || target.includes('\0')) throw new RegistryError('invalid', `The link ${quote(target)} is broken.`)
  const resolvedPath = posix.join('/', target.startsWith('/') ? '' : directory, target)
  return posix.relative(`/${directory}`, resolvedPath) || '.'
}
