import { version } from '@platform/contract/manifest'
import * as z from 'zod'

/** The configuration of a release's OCI manifest, which has one layer (a zip) per function. */

export const releaseMediaType = 'application/vnd.platform.release.v1+json'
export const functionMediaType = 'application/vnd.platform.function.v1+zip'
/** The layer annotation with the function's name. */
export const functionAnnotation = 'org.platform.function'

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/)

export const ReleaseDocument = z.object({
  version,
  createdAt: z.iso.datetime(),
  releaseNotesUrl: z
    .url({ protocol: /^https?$/ })
    .max(2000)
    .exactOptional(),
  /** The oldest version that can be updated to this one; absent: any. */
  minFrom: version.exactOptional(),
  /** The `infrastructureRevision` of the release. */
  infrastructure: z.string().regex(/^[0-9a-f]{64}$/),
  /** Function name → its zip: `index.mjs`, and `dist/` with static files. */
  functions: z.record(
    z
      .string()
      .max(100)
      .regex(/^[a-z-]+(?:\/[a-z-]+)?$/),
    z.object({ digest, size: z.int().min(1) }),
  ),
})
export type ReleaseDocument = z.infer<typeof ReleaseDocument>

/** A verified release: its document and its manifest's digest. */
export interface Release {
  document: ReleaseDocument
  /** `registry/repository`. */
  repository: string
  digest: string
  /** Name of the key that signed it. */
  verifiedBy: string
}

/** The tag of a version: tags cannot contain `+`. */
export const tagOf = (releaseVersion: string): string => releaseVersion.replace('+', '_')
