import type { ErrorCode } from '@platform/contract/errors'
import type { ModuleManifest } from '@platform/contract/manifest'
import { RegistryError } from '@platform/oci/error'
import { readImage } from '@platform/oci/image'
import { formatReference, type ImageReference, targetOf } from '@platform/oci/reference'
import { verifyImage, type Verdict } from '@platform/oci/signature/verify'
import type { Image } from '@platform/oci/types'
import { elapsedMs, now } from '../clock.ts'
import { config } from '../config.ts'
import { PlatformError, platformError } from '../error.ts'
import { manifestOf } from './image-manifest.ts'
import { isSeeded, type ModuleRelease } from './record.ts'
import { registryClientFor, describeRegistryError } from './registries.ts'
import { sdkVersion, supportsSdk } from './sdk-range.ts'

const registryTimeoutMs = 20_000

const labels = {
  isModule: 'org.platform.module',
  id: 'org.platform.module.id',
  version: 'org.platform.module.version',
} as const

/** Without `manifestUrl`, the manifest comes from the image. `id` and `version` are the expected ones. */
export interface ReleaseRequest {
  reference: ImageReference
  manifestUrl?: string | undefined
  id?: string
  version?: string
}

/**
 * Resolves the tag once, so that labels, manifest and signatures belong to the same digest. Throws
 * `module_signature_unverified` and `module_isolation_unavailable` only after all other errors.
 */
export async function resolveRelease(request: ReleaseRequest): Promise<ModuleRelease> {
  try {
    return await resolve(request)
  } catch (error) {
    throw error instanceof RegistryError ? unreachableError(error) : error
  }
}

async function resolve({ reference, manifestUrl, ...expected }: ReleaseRequest): Promise<ModuleRelease> {
  const { registry, repository } = reference
  const client = registryClientFor(registry, { untilMs: elapsedMs() + registryTimeoutMs })
  const image = await readImage(client, repository, targetOf(reference))
  if (image === undefined) {
    throw new PlatformError('image_unreachable', `Registry ${registry} has no ${formatReference(reference)}.`)
  }
  const imageLabels = moduleLabelsOf(image)
  if (imageLabels === undefined) throw platformError('image_not_a_module')
  const verdict = await verifyImage(client, repository, [image.topDigest, image.digest], config.PLAT_MODULE_KEYS, {
    atMs: now(),
  })
  const { isVerified } = verdict
  const manifest = await manifestOf({ client, image }, { manifestUrl, isVerified })
  checkIdentity(manifest, imageLabels, expected)
  if (!supportsSdk(manifest.spec.sdkVersion)) throw incompatibleError(manifest)
  if (!verdict.isVerified && config.PLAT_ALLOW_UNVERIFIED_MODULES !== 'true') throw unverifiedError(verdict)
  const release = {
    moduleId: manifest.metadata.id,
    version: manifest.metadata.version,
    repository: `${registry}/${repository}`,
    // If only this image of an index is signed, the image is installed instead of the index.
    digest: verdict.isVerified ? verdict.digest : image.topDigest,
    manifest,
    isVerified,
    ...(verdict.isVerified && { verifiedBy: verdict.by }),
  }
  if (config.PLAT_MODULE_PROCESSES === 'seeded' && !isSeeded(release))
    throw platformError('module_isolation_unavailable')
  return release
}

export interface ModuleLabels {
  id: string
  version: string
}

export function moduleLabelsOf(image: Image): ModuleLabels | undefined {
  const { [labels.isModule]: isModule, [labels.id]: id, [labels.version]: version } = image.labels
  return isModule === 'true' && id !== undefined && version !== undefined ? { id, version } : undefined
}

function checkIdentity(
  { metadata: { id, version } }: ModuleManifest,
  imageLabels: ModuleLabels,
  expectedIdentity: { id?: string; version?: string },
): void {
  if (imageLabels.id !== id) {
    throw new PlatformError(
      'manifest_id_mismatch',
      `The manifest is for ${id}, but the image labels name another module.`,
    )
  }
  if ((expectedIdentity.id ?? id) !== id) {
    throw new PlatformError('manifest_id_mismatch', `The image is for ${id}, not for ${expectedIdentity.id}.`)
  }
  if (imageLabels.version !== version || (expectedIdentity.version ?? version) !== version) {
    throw new PlatformError(
      'manifest_mismatch',
      `The manifest is for version ${version}, but the image is for another version.`,
    )
  }
}

const incompatibleError = ({ spec }: ModuleManifest): PlatformError =>
  new PlatformError('sdk_incompatible', `The module requires SDK ${spec.sdkVersion}; the platform has ${sdkVersion}.`)

const unverifiedError = ({ reason }: Extract<Verdict, { isVerified: false }>): PlatformError =>
  limitedError('module_signature_unverified', `${reason} Sign the image, or trust its signing key.`)

const unreachableError = (error: RegistryError): PlatformError =>
  limitedError('image_unreachable', describeRegistryError(error), error)

const maxMessageLength = 1000

const limitedError = (code: ErrorCode, message: string, cause?: unknown): PlatformError =>
  new PlatformError(code, message.slice(0, maxMessageLength).toWellFormed(), {}, { cause })
