import { infrastructureRevision } from '@platform/core/updates/infrastructure'
import {
  functionAnnotation,
  functionMediaType,
  ReleaseDocument,
  releaseMediaType,
  tagOf,
} from '@platform/core/updates/release-document'
import { digestOf } from '@platform/oci/digest'
import { type Manifest, mediaTypes } from '@platform/oci/types'

export type ReleaseFacts = Pick<ReleaseDocument, 'version' | 'createdAt' | 'releaseNotesUrl' | 'minFrom' | 'relay'>

export interface Artifact {
  tag: string
  /** Digest of the manifest. */
  digest: string
  manifest: Buffer
  /** Blobs of the manifest; the configuration is last. */
  blobs: readonly Uint8Array[]
}

const encodeJson = (content: unknown): Buffer => Buffer.from(JSON.stringify(content))

/** Returns the functions of a release as an OCI artifact. The same input gives the same digest. */
export function artifactOf(facts: ReleaseFacts, zips: ReadonlyMap<string, Uint8Array>): Artifact {
  const packedFunctions = [...zips].map(([name, zip]) => ({ name, zip, digest: digestOf(zip), size: zip.length }))
  const functions = Object.fromEntries(packedFunctions.map(({ name, digest, size }) => [name, { digest, size }]))
  const config = encodeJson(ReleaseDocument.parse({ ...facts, infrastructure: infrastructureRevision(), functions }))
  const manifest = encodeJson({
    schemaVersion: 2,
    mediaType: mediaTypes.manifest,
    artifactType: releaseMediaType,
    config: { mediaType: releaseMediaType, digest: digestOf(config), size: config.length },
    layers: packedFunctions.map(({ name, digest, size }) => ({
      mediaType: functionMediaType,
      digest,
      size,
      annotations: { [functionAnnotation]: name },
    })),
    annotations: {
      'org.opencontainers.image.version': facts.version,
      'org.opencontainers.image.created': facts.createdAt,
    },
  } satisfies Manifest)
  const blobs = [...packedFunctions.map(({ zip }) => zip), config]
  return { tag: tagOf(facts.version), digest: digestOf(manifest), manifest, blobs }
}
