import * as z from 'zod'
import { jsonString } from '../../lib/validate.ts'

/** A release that a tag refers to, as its labels and manifest describe it. */
export const CatalogRelease = z.object({
  moduleId: z.string(),
  version: z.string(),
  /** The digest of the tag's manifest or index. */
  digest: z.string(),
  name: z.string(),
  description: z.string(),
  isVerified: z.boolean(),
  /** Name of the key that signed it. */
  verifiedBy: z.string().optional(),
  /** Why it is not verified. */
  reason: z.string().optional(),
  createdAtMs: z.number().optional(),
  /** The image for this platform if the tag refers to an index. Either may be signed. */
  imageDigest: z.string().optional(),
})
export type CatalogRelease = z.infer<typeof CatalogRelease>

/** A digest that is not a valid release; scans do not read it again. */
const InvalidRelease = z.object({
  digest: z.string(),
  /** Why the release is invalid; absent if the digest is not a readable module image. */
  problem: z.string().optional(),
})
export type InvalidRelease = z.infer<typeof InvalidRelease>

/** A repository with modules, usually one module in several versions. */
export const CatalogRepositoryRecord = z.object({
  reference: z.string(),
  /** Its index among the configured sources; the first source of a module takes precedence. */
  place: z.number(),
  /** Newest first. */
  releases: jsonString(z.array(CatalogRelease)),
  others: jsonString(z.array(InvalidRelease)).optional(),
})
export type CatalogRepositoryRecord = z.infer<typeof CatalogRepositoryRecord>

export const CatalogScanRecord = z.object({ scannedAtMs: z.number(), problems: z.array(z.string()) })
export type CatalogScanRecord = z.infer<typeof CatalogScanRecord>
