import * as z from 'zod'
import { jsonString } from '../../lib/validate.ts'

export const CatalogRelease = z.object({
  moduleId: z.string(),
  version: z.string(),
  /** The digest of the manifest or index that the tag refers to. */
  digest: z.string(),
  name: z.string(),
  description: z.string(),
  events: z.array(z.string()).default([]),
  isVerified: z.boolean(),
  verifiedBy: z.string().optional(),
  reason: z.string().optional(),
  createdAtMs: z.number().optional(),
  /**
   * Set if the tag refers to an index: the digest of the image that `readImage` selects. Either digest may be signed.
   */
  imageDigest: z.string().optional(),
})
export type CatalogRelease = z.infer<typeof CatalogRelease>

/** Stored so that later scans do not read the digest again. */
const InvalidRelease = z.object({
  digest: z.string(),
  /** The reason shown to users; absent if the digest is not a readable module image. */
  problem: z.string().optional(),
})
export type InvalidRelease = z.infer<typeof InvalidRelease>

export const CatalogRepositoryRecord = z.object({
  reference: z.string(),
  /** The index of its source in the settings. Earlier sources take precedence; see `latestOf`. */
  sourceIndex: z.number(),
  /** Newest first. */
  releases: jsonString(z.array(CatalogRelease)),
  others: jsonString(z.array(InvalidRelease)).optional(),
})
export type CatalogRepositoryRecord = z.infer<typeof CatalogRepositoryRecord>

export const CatalogScanRecord = z.object({ scannedAtMs: z.number(), problems: z.array(z.string()) })
export type CatalogScanRecord = z.infer<typeof CatalogScanRecord>
