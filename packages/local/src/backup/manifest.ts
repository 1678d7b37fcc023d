import { valid } from 'semver'
import * as z from 'zod'

/** Name of the last entry of a backup (a gzipped tar). The entry lists the other entries with sizes and digests. */
export const manifestName = 'manifest.json'
/** Prefix of the names of all other entries. */
export const dataPrefix = 'data/'

const segment = String.raw`(?!\.{1,2}(?:/|$))[^/\\\0]{1,255}`
const plainPath = new RegExp(`^${segment}(?:/${segment})*$`)

/** Whether a path of at most 1024 characters is relative, without `.` and `..` segments and backslashes. */
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
  platformVersion: z.string().refine((text) => valid(text) !== null),
  nodeVersion: z.string(),
  files: z.array(SavedFile),
})
export type Manifest = z.infer<typeof Manifest>

/** A backup cannot be made or restored. The message is for the user. */
export class BackupError extends Error {
  override readonly name = 'BackupError'
}
