import { valid } from 'semver'
import * as z from 'zod'

/** A backup: a gzipped tar of the data folder, whose last entry says what the others must be. */

/** The last entry of a backup. */
export const manifestName = 'manifest.json'
/** The other entries lie below. */
export const dataPrefix = 'data/'

/** A segment of a path, and nothing that leads elsewhere. */
const segment = String.raw`(?!\.{1,2}(?:/|$))[^/\\\0]{1,255}`
const plainPath = new RegExp(`^${segment}(?:/${segment})*$`)

/** Whether a path stays below the folder that it is taken from. */
export const isPlainPath = (path: string): boolean => path.length <= 1024 && plainPath.test(path)

const SavedFile = z.object({
  path: z.string().refine(isPlainPath),
  bytes: z.int().min(0),
  sha256: z.string().regex(/^[\da-f]{64}$/),
})
export type SavedFile = z.infer<typeof SavedFile>

/** What a backup holds, and what wrote it. */
export const Manifest = z.object({
  format: z.literal(1),
  createdAt: z.iso.datetime(),
  /** Of the platform that made the backup. */
  platformVersion: z.string().refine((text) => valid(text) !== null),
  nodeVersion: z.string(),
  files: z.array(SavedFile),
})
export type Manifest = z.infer<typeof Manifest>

/** A backup cannot be made or restored, for a reason that the message tells and its user can mend. */
export class BackupError extends Error {
  override readonly name = 'BackupFailure'
}
