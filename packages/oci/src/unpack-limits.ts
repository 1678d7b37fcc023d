import { RegistryError } from './error.ts'

/** What reading an image may still cost; counts down as layers are read. */
export interface UnpackLimits {
  /** Of the layers' content, uncompressed. */
  bytes: number
  /** Files, directories and whatever else has a name. */
  files: number
}

/** 2 GiB and 100,000 files. */
export const defaultUnpackLimits = (): UnpackLimits => ({ bytes: 2 * 2 ** 30, files: 100_000 })

/** Spends of an allowance; throws where nothing is left. */
export function consumeLimit(allowance: UnpackLimits, of: keyof UnpackLimits, count: number): void {
  allowance[of] -= count
  if (allowance[of] < 0) throw new RegistryError('too_large', `The image has too many ${of}.`)
}
