import { version as Version } from '@platform/contract/manifest'
import type { RegistryClient } from '@platform/oci/client'
import { RegistryError } from '@platform/oci/error'
import { verifyImage } from '@platform/oci/signature/verify'
import type { Index, Manifest } from '@platform/oci/types'
import compareBuild from 'semver/functions/compare-build.js'
import parse from 'semver/functions/parse.js'
import { elapsedMs, now } from '../clock.ts'
import { config } from '../config.ts'
import { PlatformError } from '../error.ts'
import { type ReleaseRepository, parseReleaseRepository } from '../lib/settings/release-source.ts'
import { log } from '../log.ts'
import { isNewer } from '../modules/catalog/select.ts'
import { registryClientFor, describeRegistryError } from '../modules/registries.ts'
import { isStable, findIncompatibility } from './compatibility.ts'
import {
  type Release,
  tagOf,
  functionAnnotation,
  functionMediaType,
  ReleaseDocument,
  releaseMediaType,
} from './release-document.ts'

/**
 * Reads platform releases from the release repository. Accepts only releases signed by a key of `PLAT_RELEASE_KEYS`.
 * The repository is not trusted, so the numbers of tags and releases and the time are limited.
 */

const registryTimeoutMs = 20_000
const [tagLimit, candidateLimit] = [20_000, 20]

/** `refused` contains newer releases that cannot be applied. */
export interface ReleaseFeed {
  release?: Release
  refused: { version: string; reason: string }[]
}

const configuredSource = (): ReleaseRepository | undefined => parseReleaseRepository(config.PLAT_RELEASE_SOURCE)

/** Returns the newest stable release that can be applied to `currentVersion`. Throws `release_source_unreachable`. */
export const newestRelease = async (currentVersion: string): Promise<ReleaseFeed> => {
  const source = configuredSource()
  return source === undefined ? { refused: [] } : withRegistryErrors(() => newestIn(source, currentVersion))
}

async function newestIn({ registry, repository }: ReleaseRepository, currentVersion: string): Promise<ReleaseFeed> {
  const client = registryClientFor(registry, { untilMs: elapsedMs() + registryTimeoutMs })
  const refused: ReleaseFeed['refused'] = []
  for (const version of await candidateVersions(client, repository, currentVersion)) {
    const release = await releaseAt(client, repository, version)
    const incompatibility = 'reason' in release ? release : findIncompatibility(release, currentVersion)
    if (!('reason' in release) && incompatibility === undefined) return { release, refused }
    refused.push({ version, reason: incompatibility?.reason ?? '' })
  }
  return { refused }
}

/** Returns the newest versions first. Ignores tags that are not a stable version above `currentVersion`. */
async function candidateVersions(
  client: RegistryClient,
  repository: string,
  currentVersion: string,
): Promise<string[]> {
  const versions = (await tagsOf(client, repository)).flatMap((tag) => versionOf(tag) ?? [])
  const newerVersions = new Set(versions.filter((version) => isStable(version) && isNewer(version, currentVersion)))
  const parsedVersions = [...newerVersions].map((version) => ({ version, order: parse(version) ?? version }))
  const sortedVersions = parsedVersions.toSorted((a, b) => compareBuild(b.order, a.order))
  return sortedVersions.slice(0, candidateLimit).map(({ version }) => version)
}

/** Returns no tags if the repository is missing, which is normal before the first release. */
async function tagsOf(client: RegistryClient, repository: string): Promise<string[]> {
  const tags: string[] = []
  try {
    for await (const tag of client.tags(repository)) {
      if (tags.push(tag) === tagLimit) break
    }
  } catch (error) {
    if (!(error instanceof RegistryError && error.problem === 'not_found')) throw error
    log('info', 'The release repository does not exist', { source: config.PLAT_RELEASE_SOURCE })
  }
  return tags
}

/** Tags have at most 128 characters and contain `_` instead of `+`. */
const versionOf = (tag: string): string | undefined => {
  const version = tag.length <= 128 ? tag.replace('_', '+') : ''
  return isVersion(version) ? version : undefined
}

const isVersion = (text: string): boolean => Version.safeParse(text).success

/** Compares the version with the signed document, because tags are not signed. */
async function releaseAt(
  client: RegistryClient,
  repository: string,
  version: string,
): Promise<Release | RejectedRelease> {
  const release = await readRelease(client, repository, tagOf(version))
  if ('reason' in release || release.document.version === version) return release
  return { reason: `It is release ${release.document.version.slice(0, 128)} under another tag.` }
}

/**
 * Returns the release even if it cannot be applied. Throws `version_not_available` with the reason, and
 * `release_source_unreachable`.
 */
export async function findRelease(version: string): Promise<Release> {
  const source = configuredSource()
  if (source === undefined) throw notAvailableError(version, 'Updates are disabled: PLAT_RELEASE_SOURCE is empty.')
  const isValidVersion = isVersion(version) && version.length <= 128
  if (!isValidVersion) throw notAvailableError(version, 'It is not a release version.')
  const client = registryClientFor(source.registry, { untilMs: elapsedMs() + registryTimeoutMs })
  return requireRelease(version, () => releaseAt(client, source.repository, version))
}

/**
 * `repository` is `registry/repository`. Reads and verifies the release again. Throws the same errors as `findRelease`.
 */
export async function releaseByDigest(repository: string, digest: string): Promise<Release> {
  const source = parseReleaseRepository(repository)
  if (source === undefined) throw notAvailableError(repository, 'It is not a repository.')
  const client = registryClientFor(source.registry, { untilMs: elapsedMs() + registryTimeoutMs })
  return requireRelease(digest, () => readRelease(client, source.repository, digest))
}

/** Checks the signed digest and size of the zip. Throws `version_not_available` and `release_source_unreachable`. */
export async function fetchFunction({ repository, document }: Release, functionName: string): Promise<Uint8Array> {
  const { functions, version } = document
  const source = parseReleaseRepository(repository)
  const descriptor = Object.hasOwn(functions, functionName) && functions[functionName]
  if (source === undefined || !descriptor) throw notAvailableError(version, `It has no function ${functionName}.`)
  return withRegistryErrors(async () => {
    try {
      return await registryClientFor(source.registry).blob(source.repository, descriptor, descriptor.size)
    } catch (error) {
      throw isContentError(error) ? notAvailableError(version, error.message) : error
    }
  })
}

async function requireRelease(reference: string, read: () => Promise<Release | RejectedRelease>): Promise<Release> {
  const release = await withRegistryErrors(read)
  if ('reason' in release) throw notAvailableError(reference, release.reason)
  return release
}

const notAvailableError = (reference: string, reason: string): PlatformError =>
  new PlatformError(
    'version_not_available',
    `Release ${reference.slice(0, 128).toWellFormed()} is not available. ${reason}`,
  )

const retryAfterSeconds = 30

async function withRegistryErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof RegistryError)) throw error
    const message = describeRegistryError(error).slice(0, 1000).toWellFormed()
    throw new PlatformError('release_source_unreachable', message, { retryAfterSeconds }, { cause: error })
  }
}

const maxDocumentBytes = 256 * 1024
/** More functions than the platform has, each up to the limit of Lambda. */
const [maxFunctions, maxFunctionBytes] = [200, 50 * 1024 * 1024]

/** `reason` is shown to users. */
export interface RejectedRelease {
  reason: string
}

/**
 * Verifies the signature before it parses the document. Throws `RegistryError` if the registry is unreachable; invalid
 * content returns a reason.
 */
export async function readRelease(
  client: RegistryClient,
  repository: string,
  reference: string,
): Promise<Release | RejectedRelease> {
  try {
    return await read(client, repository, reference)
  } catch (error) {
    if (!isContentError(error)) throw error
    return rejection(error.message)
  }
}

/** The content is invalid or missing, so a retry would not help. */
export const isContentError = (error: unknown): error is RegistryError =>
  error instanceof RegistryError && ['invalid', 'not_found', 'too_large'].includes(error.problem)

async function read(client: RegistryClient, repository: string, reference: string): Promise<Release | RejectedRelease> {
  const manifest = await client.manifest(repository, reference)
  if (manifest === undefined) return rejection('The repository has no such release.')
  const { content, descriptor } = manifest
  if (!isRelease(content)) return rejection('It is not a release of the platform.')
  const verdict = await verifyImage(client, repository, [descriptor.digest], config.PLAT_RELEASE_KEYS, { atMs: now() })
  if (!verdict.isVerified) return rejection(verdict.reason)
  const document = parseDocument(await client.blob(repository, content.config, maxDocumentBytes))
  if (document === undefined) return rejection('Its document is invalid.')
  if (!hasLayersOf(content, document)) return rejection('Its layers do not match its document.')
  const { digest } = descriptor
  return { document, repository: `${client.registry}/${repository}`, digest, verifiedBy: verdict.by }
}

const rejection = (reason: string): RejectedRelease => ({ reason: reason.slice(0, 500).toWellFormed() })

const isRelease = (content: Manifest | Index): content is Manifest =>
  'layers' in content && content.artifactType === releaseMediaType && content.config.mediaType === releaseMediaType

function parseDocument(bytes: Buffer): ReleaseDocument | undefined {
  try {
    return ReleaseDocument.safeParse(JSON.parse(bytes.toString())).data
  } catch {
    return undefined
  }
}

/** The layers must be exactly the document's functions, so that a registry can neither omit nor add one. */
function hasLayersOf({ layers }: Manifest, { functions }: ReleaseDocument): boolean {
  const layersByFunction = new Map(layers.map((layer) => [layer.annotations?.[functionAnnotation], layer]))
  const entries = Object.entries(functions)
  const isComplete = entries.length > 0 && entries.length <= maxFunctions && entries.length === layers.length
  return (
    isComplete &&
    entries.every(([name, { digest, size }]) => {
      const layer = layersByFunction.get(name)
      const isMatch = layer?.digest === digest && layer.size === size && layer.mediaType === functionMediaType
      return isMatch && size <= maxFunctionBytes
    })
  )
}
