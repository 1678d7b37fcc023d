import { constants } from 'node:fs'
import { link, lstat, mkdir, open, readdir, readlink, rm, symlink } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { type UnpackLimits, consumeLimit } from './unpack-limits.ts'
import { RegistryError } from './error.ts'
import { containedLink, imagePath, parentOf, quoted, whiteoutOf } from './image-path.ts'
import type { LayerEntry } from './layer.ts'

/** Maximum number of symlinks in one path, the same as in Linux. */
const maxLinks = 40

/** A location: the path of its directory, without symlinks, and its own name. */
interface Place {
  directory: string
  name: string
}

const pathOf = ({ directory, name }: Place): string => (directory === '' ? name : `${directory}/${name}`)

/**
 * A directory that layers are unpacked into. Nothing is written outside of it: symlinks in a path resolve as if the
 * directory were the file system root, and the targets of unpacked symlinks are rewritten to stay inside.
 */
export class ImageTree {
  readonly #root: string
  readonly #allowance: UnpackLimits
  /** Paths that are known to be directories and not symlinks. */
  readonly #directories = new Set<string>([''])
  /** Paths that the current layer has written, and their parent directories. */
  readonly #written = new Set<string>()

  constructor(root: string, allowance: UnpackLimits) {
    this.#root = root
    this.#allowance = allowance
  }

  /** Starts a layer: its whiteouts remove only content of earlier layers. */
  startLayer(): void {
    this.#written.clear()
  }

  /** Writes an entry in place of existing content, or applies a whiteout. */
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
    if (entry.path !== '') await this.#put(entry)
    else if (entry.kind !== 'directory') throw new RegistryError('invalid', 'The root of an image is a directory.')
  }

  async #put(entry: LayerEntry): Promise<void> {
    const place = await this.#place(entry.path)
    const path = pathOf(place)
    this.#note(path)
    if (entry.kind === 'directory') return this.#putDirectory(path)
    if (entry.kind === 'link') return this.#putLink(path, entry)
    await this.#clear(path)
    if (entry.kind === 'file') await this.#putFile(path, entry)
    if (entry.kind === 'symlink') await symlink(containedLink(place.directory, entry.target), this.#on(path))
  }

  async #putDirectory(path: string): Promise<void> {
    if (this.#directories.has(path)) return
    if ((await this.#kindOf(path)) !== 'directory') {
      await this.#clear(path)
      await mkdir(this.#on(path))
    }
    this.#directories.add(path)
  }

  /** Writes a file with mode 755 or 644 only, which drops setuid and setgid bits. */
  async #putFile(path: string, { isExecutable, content }: LayerEntry): Promise<void> {
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
    const file = await open(this.#on(path), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, isExecutable ? 0o755 : 0o644)
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
    const source = pathOf(await this.#place(imagePath(entry.target)))
    if ((await this.#kindOf(source)) !== 'file') {
      throw new RegistryError('invalid', `The link ${quoted(entry.path)} is to no file of the image.`)
    }
    if (source === path) return
    await this.#clear(path)
    await link(this.#on(source), this.#on(path))
  }

  async #place(path: string): Promise<Place> {
    return { directory: await this.#walk(parentOf(path), true), name: posix.basename(path) }
  }

  /**
   * Resolves symlinks in the path of a directory. Creates missing directories if `isMade`, else returns undefined.
   */
  async #walk(path: string, isMade: true): Promise<string>
  async #walk(path: string, isMade: boolean): Promise<string | undefined>
  async #walk(path: string, isMade: boolean): Promise<string | undefined> {
    const ahead = path.split('/').toReversed()
    let here = ''
    let links = 0
    for (let part = ahead.pop(); part !== undefined; part = ahead.pop()) {
      if (part === '' || part === '.') continue
      const next = part === '..' ? parentOf(here) : pathOf({ directory: here, name: part })
      const kind = this.#directories.has(next) ? 'directory' : await this.#kindOf(next)
      if (kind === 'link') {
        links += 1
        if (links > maxLinks) throw new RegistryError('invalid', `The path ${quoted(path)} leads in a circle.`)
        ahead.push(...(await readlink(this.#on(next))).split('/').toReversed())
        continue
      }
      if (!isMade && kind !== 'directory') return undefined
      if (kind === undefined) await this.#make(next)
      if (kind === 'file') throw new RegistryError('invalid', `The path ${quoted(path)} leads through a file.`)
      this.#directories.add(next)
      here = next
    }
    return here
  }

  async #make(path: string): Promise<void> {
    consumeLimit(this.#allowance, 'files', 1)
    await mkdir(this.#on(path))
  }

  async #kindOf(path: string): Promise<'file' | 'directory' | 'link' | undefined> {
    const found = await lstat(this.#on(path)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      throw error
    })
    if (found?.isSymbolicLink()) return 'link'
    return found && (found.isDirectory() ? 'directory' : 'file')
  }

  /** Removes existing content at a path. */
  async #clear(path: string): Promise<void> {
    await rm(this.#on(path), { recursive: true, force: true })
    // Rare for a directory. Later calls of `#walk` find the remaining directories again.
    if (this.#directories.has(path)) this.#forget()
  }

  /** Removes content of lower layers at a path, and keeps content of the current layer. */
  async #erase(path: string): Promise<void> {
    if (!this.#written.has(path)) return this.#clear(path)
    if ((await this.#kindOf(path)) === 'directory') await this.#eraseBelow(path)
  }

  async #eraseBelow(directory: string): Promise<void> {
    for (const name of await readdir(this.#on(directory))) await this.#erase(pathOf({ directory, name }))
  }

  #note(path: string): void {
    for (let each = path; each !== '' && !this.#written.has(each); each = parentOf(each)) this.#written.add(each)
  }

  #forget(): void {
    this.#directories.clear()
    this.#directories.add('')
  }

  #on(path: string): string {
    return join(this.#root, path)
  }
}
