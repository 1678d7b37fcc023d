import { type ErrorCode } from '@platform/contract/errors'
import { type ModuleManifest } from '@platform/contract/manifest'
import { RegistryError } from '@platform/oci/error'
import { readImage } from '@platform/oci/image'
import { formatReference, type ImageReference, targetOf } from '@platform/oci/reference'
import { verifyImage, type Verdict } from '@platform/oci/signature/verify'
import { type Image } from '@platform/oci/types'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import { PlatformError, platformError } from '../error.ts'
import { manifestOf } from './image-manifest.ts'
import { type ModuleRelease } from './record.ts'
import { registryClientFor, describeRegistryError } from './registries.ts'
import { sdkVersion, supportsSdk } from './sdk-range.ts'

/** What an image reference stands for, found good or refused (D46, D47). Nothing is stored here, and nothing is run. */

/** What registries get to answer in all, so that whoever has asked gets an answer, too. */
const registryMs = 20_000

/** The labels of an image that is a module (section 9). */
const labels = {
  isModule: 'org.platform.module',
  id: 'org.platform.module.id',
  version: 'org.platform.module.version',
} as const

/** What is wanted: an image, where its manifest is if not in it, and what it has to be. */
export interface ReleaseRequest {
  reference: ImageReference
  manifestUrl?: string | undefined
  id?: string
  version?: string
}

/**
 * Reads an image's labels, its manifest and its signatures, and answers the release that they make. The tag is resolved
 * once: what is read, verified and answered is one digest. Throws the faults of D31, `module_signature_unverified` last. No
 * store calls; a handful of requests to the registry, which has 20 seconds for them all.
 */
export async function resolveRelease(wanted: ReleaseRequest): Promise<ModuleRelease> {
  try {
    return await resolve(wanted)
  } catch (error) {
    throw error instanceof RegistryError ? faultOf(error) : error
  }
}

async function resolve({ reference, manifestUrl, ...expected }: ReleaseRequest): Promise<ModuleRelease> {
  const { registry, repository } = reference
  const client = registryClientFor(registry, { untilMs: now() + registryMs })
  const image = await readImage(client, repository, targetOf(reference))
  if (image === undefined) {
    throw new PlatformError('image_unreachable', `Registry ${registry} has no ${formatReference(reference)}.`)
  }
  const claims = claimsOf(image)
  if (claims === undefined) throw platformError('image_not_a_module')
  const verdict = await verifyImage(client, repository, [image.topDigest, image.digest], config.PLAT_MODULE_KEYS, {
    atMs: now(),
  })
  const { isVerified } = verdict
  const manifest = await manifestOf({ client, image }, { manifestUrl, isVerified })
  checkAgreement(manifest, claims, expected)
  if (!supportsSdk(manifest.spec.sdkVersion)) throw incompatible(manifest)
  if (!verdict.isVerified && config.PLAT_ALLOW_UNVERIFIED_MODULES !== 'true') throw unverified(verdict)
  return {
    moduleId: manifest.metadata.id,
    version: manifest.metadata.version,
    repository: `${registry}/${repository}`,
    // Of an index only one image may be signed: then that one is installed, wherever it runs.
    digest: verdict.isVerified ? verdict.digest : image.topDigest,
    manifest,
    isVerified,
    ...(verdict.isVerified && { verifiedBy: verdict.by }),
  }
}

/** What an image says of itself. */
export interface ImageClaims {
  id: string
  version: string
}

/** The module that an image is by its labels; undefined where it is none. */
export function claimsOf(image: Image): ImageClaims | undefined {
  const { [labels.isModule]: isModule, [labels.id]: id, [labels.version]: version } = image.labels
  return isModule === 'true' && id !== undefined && version !== undefined ? { id, version } : undefined
}

function checkAgreement(
  { metadata: { id, version } }: ModuleManifest,
  claims: ImageClaims,
  expected: { id?: string; version?: string },
): void {
  if (claims.id !== id) {
    throw new PlatformError(
      'manifest_id_mismatch',
      `The manifest is of ${id}, the image of another module by its labels.`,
    )
  }
  if ((expected.id ?? id) !== id) {
    throw new PlatformError('manifest_id_mismatch', `The image is of ${id}, not of ${expected.id}.`)
  }
  if (claims.version !== version || (expected.version ?? version) !== version) {
    throw new PlatformError('manifest_mismatch', `The manifest is of version ${version}, the image of another one.`)
  }
}

const incompatible = ({ spec }: ModuleManifest): PlatformError =>
  new PlatformError('sdk_incompatible', `The module needs SDK ${spec.sdkVersion}; the platform has ${sdkVersion}.`)

const unverified = ({ reason }: Extract<Verdict, { isVerified: false }>): PlatformError =>
  refusal('module_signature_unverified', `${reason} Sign it, or trust the key that did.`)

const faultOf = (failure: RegistryError): PlatformError =>
  refusal('image_unreachable', describeRegistryError(failure), failure)

const messageLength = 1000

/** What a registry or an image says of itself is as long as they like. */
const refusal = (code: ErrorCode, message: string, cause?: unknown): PlatformError =>
  new PlatformError(code, message.slice(0, messageLength).toWellFormed(), {}, { cause })
