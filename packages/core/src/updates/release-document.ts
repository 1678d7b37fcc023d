import { version } from '@platform/contract/manifest'
import * as z from 'zod'

/**
 * A release of the platform as its artifact describes it (D50): the configuration of an OCI manifest whose layers are the
 * functions, one zip each.
 */

export const releaseMediaType = 'application/vnd.platform.release.v1+json'
export const functionMediaType = 'application/vnd.platform.function.v1+zip'
/** The annotation of a layer that names its function. */
export const functionAnnotation = 'org.platform.function'

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/)

export const ReleaseDocument = z.object({
  version,
  createdAt: z.iso.datetime(),
  releaseNotesUrl: z
    .url({ protocol: /^https?$/ })
    .max(2000)
    .exactOptional(),
  /** The oldest version that may be updated to this one; absent: any. */
  minFrom: version.exactOptional(),
  /** As `infrastructureRevision` tells of the code that it was built from. */
  infrastructure: z.string().regex(/^[0-9a-f]{64}$/),
  /** Function name → its zip: `index.mjs`, and `dist/` with the files that it hands out. */
  functions: z.record(
    z
      .string()
      .max(100)
      .regex(/^[a-z-]+(?:\/[a-z-]+)?$/),
    z.object({ digest, size: z.int().min(1) }),
  ),
})
export type ReleaseDocument = z.infer<typeof ReleaseDocument>

/** A release that was found good: what it says of itself, and which manifest says so. */
export interface Release {
  document: ReleaseDocument
  /** `registry/repository`. */
  repository: string
  /** Of the manifest. */
  digest: string
  /** Name of the key that signed it. */
  verifiedBy: string
}

/** The tag of a version: a tag holds no `+`. */
export const tagOf = (releaseVersion: string): string => releaseVersion.replace('+', '_')
