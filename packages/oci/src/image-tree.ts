import { constants } from 'node:fs'
import { link, lstat, mkdir, open, readdir, readlink, rm, symlink } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { type UnpackLimits, consumeLimit } from './layer-limits.ts'
import { RegistryError } from './error.ts'
import { confineLinkTarget, normalizePath, parentOf, quote, whiteoutOf } from './image-path.ts'
import type { LayerEntry } from './layer.ts'

/** Maximum number of symlinks in one path, the same as in Linux. */
const maxSymlinks = 40

/** `directory` is a path without symlinks. */
interface Location {
  directory: string
  name: string
}

const pathOf = ({ directory, name }: Location): string => (directory === '' ? name : `${directory}/${name}`)

/**
 * A directory that layers are unpacked into. Nothing is written outside of it: symlinks in a path resolve as if the
 * directory were the file system root, and the targets of unpacked symlinks are rewritten to stay inside.
 */
export class ImageTree {
  readonly #root: string
  readonly #limits: UnpackLimits
  /** Paths that are known to be directories and not symlinks. */
  readonly #directories = new Set<string>([''])
  /** Paths that the current layer has written, and their parent directories. */
  readonly #writtenPaths = new Set<string>()

  constructor(root: string, limits: UnpackLimits) {
    this.#root = root
    this.#limits = limits
  }

  /** Must be called before each layer, because whiteouts remove only content of earlier layers. */
  startLayer(): void {
    this.#writtenPaths.clear()
  }

  /**
   * Writes an entry of a layer, or applies a whiteout. Replaces existing content at the path, but keeps an existing
   * directory if the entry is a directory.
   */
  async apply(entry: LayerEntry): Promise<void> {
    const whiteout = whiteoutOf(entry.path)
    if (whiteout?.kind === 'nothing') return
    if (whiteout !== undefined) {
      const directory = await this.#walk(whiteout.kind === 'below' ? whiteout.path : parentOf(whiteout.path), false)
      if (directory === undefined) return
      if (whiteout.kind === 'below') await this.#eraseBelow(directory)
      else await this.#erase(pathOf({ directory, name: posix.basename(whiteout.path) }))
      return
    }
    if (entry.path !== '') await this.#write(entry)
    else if (entry.kind !== 'directory') throw new RegistryError('invalid', 'The root of an image is a directory.')
  }

  async #write(entry: LayerEntry): Promise<void> {
    const location = await this.#locate(entry.path)
    const path = pathOf(location)
    this.#markWritten(path)
    if (entry.kind === 'directory') return this.#putDirectory(path)
    if (entry.kind === 'link') return this.#putLink(path, entry)
    await this.#clear(path)
    if (entry.kind === 'file') await this.#putFile(path, entry)
    if (entry.kind === 'symlink')
      await symlink(confineLinkTarget(location.directory, entry.target), this.#hostPath(path))
  }

  async #putDirectory(path: string): Promise<void> {
    if (this.#directories.has(path)) return
    if ((await this.#kindOf(path)) !== 'directory') {
      await this.#clear(path)
      await mkdir(this.#hostPath(path))
    }
    this.#directories.add(path)
  }

  /** Writes a file with mode 755 or 644 only, which drops setuid and setgid bits. */
  async #putFile(path: string, { isExecutable, content }: LayerEntry): Promise<void> {
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
    const file = await open(
      this.#hostPath(path),
      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
      isExecutable ? 0o755 : 0o644,
    )
    try {
      await file.writeFile(content)
    } finally {
      await file.close()
    }
  }

  /**
   * Creates a hard link to a file. Rejects links to symlinks, whose relative targets would differ in another directory.
   */
  async #putLink(path: string, entry: LayerEntry): Promise<void> {
    const source = pathOf(await this.#locate(normalizePath(entry.target)))
    if ((await this.#kindOf(source)) !== 'file') {
      throw new RegistryError('invalid', `The link ${quote(entry.path)} refers to no file of the image.`)
    }
    if (source === path) return
    await this.#clear(path)
    await link(this.#hostPath(source), this.#hostPath(path))
  }

  async #locate(path: string): Promise<Location> {
    return { directory: await this.#walk(parentOf(path), true), name: posix.basename(path) }
  }

  /**
   * Resolves symlinks in the path of a directory. If a directory of the path is missing, creates the directory, or
   * returns undefined without `mayCreate`.
   */
  async #walk(path: string, mayCreate: true): Promise<string>
  async #walk(path: string, mayCreate: boolean): Promise<string | undefined>
  async #walk(path: string, mayCreate: boolean): Promise<string | undefined> {
    const segments = path.split('/').toReversed()
    let currentPath = ''
    let symlinkCount = 0
    for (let part = segments.pop(); part !== undefined; part = segments.pop()) {
      if (part === '' || part === '.') continue
      const nextPath = part === '..' ? parentOf(currentPath) : pathOf({ directory: currentPath, name: part })
      const kind = this.#directories.has(nextPath) ? 'directory' : await this.#kindOf(nextPath)
      if (kind === 'symlink') {
        symlinkCount += 1
        if (symlinkCount > maxSymlinks)
          throw new RegistryError('invalid', `The path ${quote(path)} contains a link cycle.`)
        segments.push(...(await readlink(this.#hostPath(nextPath))).split('/').toReversed())
        continue
      }
      if (!mayCreate && kind !== 'directory') return undefined
      if (kind === undefined) await this.#createDirectory(nextPath)
      if (kind === 'file') throw new RegistryError('invalid', `The path ${quote(path)} leads through a file.`)
      this.#directories.add(nextPath)
      currentPath = nextPath
    }
    return currentPath
  }

  async #createDirectory(path: string): Promise<void> {
    consumeLimit(this.#limits, 'files', 1)
    await mkdir(this.#hostPath(path))
  }

  async #kindOf(path: string): Promise<'file' | 'directory' | 'symlink' | undefined> {
    const stats = await lstat(this.#hostPath(path)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      throw error
    })
    if (stats?.isSymbolicLink()) return 'symlink'
    return stats && (stats.isDirectory() ? 'directory' : 'file')
  }

  async #clear(path: string): Promise<void> {
    await rm(this.#hostPath(path), { recursive: true, force: true })
    // Cached paths may be inside the removed directory. `#walk` adds the remaining directories again.
    if (this.#directories.has(path)) this.#resetDirectories()
  }

  /** Keeps content of the current layer. */
  async #erase(path: string): Promise<void> {
    if (!this.#writtenPaths.has(path)) return this.#clear(path)
    if ((await this.#kindOf(path)) === 'directory') await this.#eraseBelow(path)
  }

  async #eraseBelow(directory: string): Promise<void> {
    for (const name of await readdir(this.#hostPath(directory))) await this.#erase(pathOf({ directory, name }))
  }

  #markWritten(path: string): void {
    for (let each = path; each !== '' && !this.#writtenPaths.has(each); each = parentOf(each))
      this.#writtenPaths.add(each)
  }

  #resetDirectories(): void {
    this.#directories.clear()
    this.#directories.add('')
  }

  #hostPath(path: string): string {
    return join(this.#root, path)
  }
}
