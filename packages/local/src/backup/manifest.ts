import { valid } from 'semver'
import * as z from 'zod'

/** A backup is a gzipped tar of the data folder. This last entry lists the other entries with their digests. */
export const manifestName = 'manifest.json'
/** All other entries have this prefix. */
export const dataPrefix = 'data/'

/** Excludes `.` and `..`. */
const segment = String.raw`(?!\.{1,2}(?:/|$))[^/\\\0]{1,255}`
const plainPath = new RegExp(`^${segment}(?:/${segment})*$`)

/** Whether a path is relative and stays below the folder that it is resolved against. */
export const isPlainPath = (path: string): boolean => path.length <= 1024 && plainPath.test(path)

const SavedFile = z.object({
  path: z.string().refine(isPlainPath),
  bytes: z.int().min(0),
  sha256: z.string().regex(/^[\da-f]{64}$/),
})
export type SavedFile = z.infer<typeof SavedFile>

export const Manifest = z.object({
  format: z.literal(1),
  createdAt: z.iso.datetime(),
  /** The version of the platform that made the backup. */
  platformVersion: z.string().refine((text) => valid(text) !== null),
  nodeVersion: z.string(),
  files: z.array(SavedFile),
})
export type Manifest = z.infer<typeof Manifest>

/** A backup cannot be made or restored for a reason that the user can fix. */
export class BackupError extends Error {
  override readonly name = 'BackupError'
}
