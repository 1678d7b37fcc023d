import { version } from '@platform/contract/manifest'
import * as z from 'zod'

/**
 * A release is an OCI manifest with one layer, a zip file, per function. `releaseMediaType` is the type of its
 * configuration.
 */

export const releaseMediaType = 'application/vnd.platform.release.v1+json'
export const functionMediaType = 'application/vnd.platform.function.v1+zip'
export const functionAnnotation = 'org.platform.function'

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/)

/** The file of the relay in the release. `signature` is the Base64 signature by the release key. */
export const RelayProgram = z.object({
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  signature: z
    .string()
    .max(1000)
    .regex(/^[A-Za-z0-9+/]+={0,2}$/),
})
export type RelayProgram = z.infer<typeof RelayProgram>

export const ReleaseDocument = z.object({
  version,
  createdAt: z.iso.datetime(),
  releaseNotesUrl: z.url({ protocol: /^https?$/ }).max(2000),
  /** The oldest version that can be updated to this one. If it is absent, every version can. */
  minFrom: version.exactOptional(),
  relay: RelayProgram.exactOptional(),
  infrastructure: z.string().regex(/^[0-9a-f]{64}$/),
  functions: z.record(
    z
      .string()
      .max(100)
      .regex(/^[a-z-]+(?:\/[a-z-]+)?$/),
    z.object({ digest, size: z.int().min(1) }),
  ),
})
export type ReleaseDocument = z.infer<typeof ReleaseDocument>

/** `digest` is the digest of the manifest. */
export interface Release {
  document: ReleaseDocument
  repository: string
  digest: string
  verifiedBy: string
}

/** Tags cannot contain `+`. */
export const tagOf = (releaseVersion: string): string => releaseVersion.replace('+', '_')
