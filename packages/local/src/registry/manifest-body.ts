import { mediaTypes } from '@platform/oci/types'
import { isDigest } from '@platform/oci/digest'
import * as z from 'zod'
import { RegistryServerError } from './error.ts'
import type { Store } from './store.ts'

export const maxManifestBytes = 4 * 1024 * 1024

const Reference = z.object({ digest: z.string().refine(isDigest), size: z.number().int().min(0) })
const ManifestBody = z.object({
  schemaVersion: z.literal(2),
  mediaType: z.string().optional(),
  artifactType: z.string().optional(),
  annotations: z.record(z.string(), z.string()).optional(),
  config: Reference.extend({ mediaType: z.string() }).optional(),
  layers: z.array(Reference).default([]),
  manifests: z.array(Reference).default([]),
  subject: Reference.optional(),
})
type ManifestBody = z.infer<typeof ManifestBody>

const indexTypes = new Set<string>([mediaTypes.index, mediaTypes.dockerIndex])
const imageTypes = new Set<string>([mediaTypes.manifest, mediaTypes.dockerManifest])

/** Throws `MANIFEST_INVALID`, or `MANIFEST_BLOB_UNKNOWN` if the repository lacks content of the manifest. */
export async function checkManifest(store: Store, repository: string, mediaType: string, bytes: Buffer) {
  const manifest = parseManifest(mediaType, bytes)
  const missingDigests = await Promise.all([
    ...blobsOf(manifest).map(async (digest) => (await store.blob(repository, digest)) === undefined && digest),
    ...manifest.manifests.map(async ({ digest }) => !(await store.hasManifest(repository, digest)) && digest),
  ])
  const missingDigest = missingDigests.find((digest) => digest !== false)
  if (missingDigest !== undefined)
    throw new RegistryServerError('MANIFEST_BLOB_UNKNOWN', `The repository does not have ${missingDigest}.`)
  return { subject: manifest.subject?.digest }
}

const blobsOf = ({ config, layers }: ManifestBody): string[] =>
  [...(config === undefined ? [] : [config]), ...layers].map(({ digest }) => digest)

function parseManifest(mediaType: string, bytes: Buffer): ManifestBody {
  const isIndex = indexTypes.has(mediaType)
  if (!isIndex && !imageTypes.has(mediaType)) {
    throw new RegistryServerError(
      'MANIFEST_INVALID',
      'Content-Type must be that of an OCI or Docker manifest, version 2.',
    )
  }
  const parsed = ManifestBody.safeParse(jsonOf(bytes))
  if (!parsed.success) throw new RegistryServerError('MANIFEST_INVALID', 'The manifest does not match its type.')
  const { data } = parsed
  if ((data.mediaType ?? mediaType) !== mediaType) {
    throw new RegistryServerError('MANIFEST_INVALID', 'The mediaType of the manifest differs from Content-Type.')
  }
  // Clients could interpret a document of both types differently: as the signed image, or as a list of other images.
  const isBoth = isIndex ? data.config !== undefined || data.layers.length > 0 : data.manifests.length > 0
  if (isBoth || (!isIndex && data.config === undefined)) {
    throw new RegistryServerError('MANIFEST_INVALID', 'A manifest has a config and layers, an index has manifests.')
  }
  return data
}

function jsonOf(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}
