import { access, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { removeFolder, type UnpackedImage } from './launcher.ts'
import type { DeploymentSpec } from './port.ts'

export type ImageName = Pick<DeploymentSpec, 'repository' | 'digest'>

export type FetchImage = (name: ImageName, folder: string) => Promise<UnpackedImage>

/**
 * The unpacked images of this machine, each shared by its users. An existing image is used without calling its
 * registry, so that a platform can restart while the registry is unreachable.
 */
export class Images {
  readonly #folder: string
  readonly #fetch: FetchImage
  /** Verified digest → number of holders, and the image once it is available. */
  readonly #heldImages = new Map<string, { count: number; image: Promise<UnpackedImage> }>()
  readonly #removals = new Map<string, Promise<void>>()

  constructor(folder: string, fetch: FetchImage) {
    this.#folder = folder
    this.#fetch = fetch
  }

  /** Fetches an image unless it exists, and keeps it until `release`. If fetching throws, the image is not held. */
  async hold(name: ImageName): Promise<UnpackedImage> {
    const heldImage = this.#heldImages.get(name.digest) ?? { count: 0, image: this.#load(name) }
    heldImage.count += 1
    this.#heldImages.set(name.digest, heldImage)
    try {
      return await heldImage.image
    } catch (error) {
      await this.release(name.digest)
      throw error
    }
  }

  /** Releases an image, and removes it if it has no other holder. */
  async release(digest: string): Promise<void> {
    const heldImage = this.#heldImages.get(digest)
    if (heldImage !== undefined && --heldImage.count === 0) this.#heldImages.delete(digest)
    await this.removeUnheld(digest)
  }

  async removeUnheld(digest: string): Promise<void> {
    if (this.#heldImages.has(digest)) return
    const removal = this.#afterRemoval(digest).then(() => removeFolder(this.#folderOf(digest)))
    this.#removals.set(digest, removal)
    try {
      await removal
    } finally {
      if (this.#removals.get(digest) === removal) this.#removals.delete(digest)
    }
  }

  /** Removes the images that a killed process has left: all that are neither held nor listed. */
  async removeOthers(digests: readonly string[]): Promise<void> {
    const fileNames = await readdir(this.#folder).catch(() => [])
    const others = fileNames.map((name) => name.replace('-', ':')).filter((digest) => !digests.includes(digest))
    await Promise.all(others.map((digest) => this.removeUnheld(digest)))
  }

  /** Settles when no removal of the image is in progress, even if it failed. */
  async #afterRemoval(digest: string): Promise<void> {
    await this.#removals.get(digest)?.catch(() => {})
  }

  async #load(name: ImageName): Promise<UnpackedImage> {
    await this.#afterRemoval(name.digest)
    const currentImage = await this.#find(name.digest)
    if (currentImage !== undefined) return currentImage
    const image = await this.#fetch(name, this.#folderOf(name.digest))
    await writeFile(this.#metadataPathOf(name.digest), JSON.stringify(image))
    return image
  }

  async #find(digest: string): Promise<UnpackedImage | undefined> {
    try {
      const image: UnpackedImage = JSON.parse(await readFile(this.#metadataPathOf(digest), 'utf8'))
      // In a copied folder, the file contains the paths of the original folder.
      if (!image.root.startsWith(this.#folderOf(digest))) return undefined
      await access(image.root)
      return image
    } catch {
      return undefined
    }
  }

  #folderOf(digest: string): string {
    return join(this.#folder, digest.replace(':', '-'))
  }

  /** Returns the path of the file that marks a fully unpacked image, because it is written last. */
  #metadataPathOf(digest: string): string {
    return join(this.#folderOf(digest), 'image.json')
  }
}
