import { RegistryError } from './error.ts'

/** Remaining limits of reading an image. They decrease as layers are read. */
export interface UnpackLimits {
  /** Bytes of uncompressed layer content. */
  bytes: number
  /** Files, directories and other entries. */
  files: number
}

/** 2 GiB and 100,000 files. */
export const defaultUnpackLimits = (): UnpackLimits => ({ bytes: 2 * 2 ** 30, files: 100_000 })

/** Decreases a limit. Throws `RegistryError` (`too_large`) if it is exceeded. */
export function consumeLimit(limits: UnpackLimits, of: keyof UnpackLimits, count: number): void {
  limits[of] -= count
  if (limits[of] < 0) throw new RegistryError('too_large', `The image has too many ${of}.`)
}
