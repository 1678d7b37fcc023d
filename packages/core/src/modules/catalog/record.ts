import * as z from 'zod'
import { jsonString } from '../../lib/json.ts'

/** How the catalog is stored (D45). */

/** A release that a tag of a repository leads to. What it says of itself stands in its labels and its manifest. */
export const CatalogRelease = z.object({
  moduleId: z.string(),
  version: z.string(),
  /** Of the manifest or index that the tag leads to. */
  digest: z.string(),
  name: z.string(),
  description: z.string(),
  isVerified: z.boolean(),
  /** Name of the key that signed it. */
  verifiedBy: z.string().optional(),
  /** Why it is not verified. */
  reason: z.string().optional(),
  createdAtMs: z.number().optional(),
  /** Of the image of this machine's kind, where the tag leads to an index: either may be what is signed. */
  imageDigest: z.string().optional(),
})
export type CatalogRelease = z.infer<typeof CatalogRelease>

/** Something that tags lead to and that is no release: a digest stays what it is, and is not looked at again. */
const InvalidRelease = z.object({
  digest: z.string(),
  /** What is wrong with it; absent where it is no module at all. */
  problem: z.string().optional(),
})
export type InvalidRelease = z.infer<typeof InvalidRelease>

/** A repository that holds modules; usually one module in several versions. */
export const CatalogRepositoryRecord = z.object({
  /** `registry/repository`. */
  reference: z.string(),
  /** Its place among the configured sources: of two that hold the same module, the earlier one counts. */
  place: z.number(),
  /** Newest first, as the scan orders them. */
  releases: jsonString(z.array(CatalogRelease)),
  others: jsonString(z.array(InvalidRelease)).optional(),
})
export type CatalogRepositoryRecord = z.infer<typeof CatalogRepositoryRecord>

/** How the last scan went. */
export const CatalogScanRecord = z.object({ scannedAtMs: z.number(), problems: z.array(z.string()) })
export type CatalogScanRecord = z.infer<typeof CatalogScanRecord>
