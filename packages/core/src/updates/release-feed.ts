import { version as Version } from '@platform/contract/manifest'
import type { RegistryClient } from '@platform/oci/client'
import { RegistryError } from '@platform/oci/error'
import { verifyImage } from '@platform/oci/signature/verify'
import type { Index, Manifest } from '@platform/oci/types'
import compareBuild from 'semver/functions/compare-build.js'
import parse from 'semver/functions/parse.js'
import { now } from '../clock.ts'
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
 * Reads platform releases from the release repository. Only releases signed by a key of `PLAT_RELEASE_KEYS` are
 * accepted; tags, releases and time are limited.
 */

const sourceMs = 20_000
const [tagLimit, candidateLimit] = [20_000, 20]

/** The newest applicable release, and newer ones that cannot be applied. */
export interface Feed {
  release?: Release
  refused: { version: string; reason: string }[]
}

/** The release repository; undefined if updates are disabled. */
const source = (): ReleaseRepository | undefined => parseReleaseRepository(config.PLAT_RELEASE_SOURCE)

/**
 * The newest stable release that can be applied to `current`; none if updates are disabled. No store calls; a request
 * per page of tags and a few for each of at most 20 releases, within 20 seconds. Throws `release_source_unreachable`.
 */
export const newestRelease = async (current: string): Promise<Feed> => {
  const place = source()
  return place === undefined ? { refused: [] } : reached(() => newestIn(place, current))
}

async function newestIn({ registry, repository }: ReleaseRepository, current: string): Promise<Feed> {
  const client = registryClientFor(registry, { untilMs: now() + sourceMs })
  const refused: Feed['refused'] = []
  for (const version of await candidates(client, repository, current)) {
    const found = await releaseAt(client, repository, version)
    const refusal = 'reason' in found ? found : findIncompatibility(found, current)
    if (!('reason' in found) && refusal === undefined) return { release: found, refused }
    refused.push({ version, reason: refusal?.reason ?? '' })
  }
  return { refused }
}

/** The newest stable versions above `current` among the tags, newest first. Other tags are ignored. */
async function candidates(client: RegistryClient, repository: string, current: string): Promise<string[]> {
  const versions = (await tagsOf(client, repository)).flatMap((tag) => versionOf(tag) ?? [])
  const newer = new Set(versions.filter((version) => isStable(version) && isNewer(version, current)))
  const parsed = [...newer].map((version) => ({ version, order: parse(version) ?? version }))
  const newestFirst = parsed.toSorted((a, b) => compareBuild(b.order, a.order))
  return newestFirst.slice(0, candidateLimit).map(({ version }) => version)
}

/** A missing repository has no releases yet. */
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

/** The version of a tag; undefined if it has none. Tags have at most 128 characters. */
const versionOf = (tag: string): string | undefined => {
  const version = tag.length <= 128 ? tag.replace('_', '+') : ''
  return isVersion(version) ? version : undefined
}

const isVersion = (text: string): boolean => Version.safeParse(text).success

/** Someone with push access could tag an old release as new: the signed document has the version. */
async function releaseAt(
  client: RegistryClient,
  repository: string,
  version: string,
): Promise<Release | InvalidReleaseError> {
  const found = await readRelease(client, repository, tagOf(version))
  if ('reason' in found || found.document.version === version) return found
  return { reason: `It is release ${found.document.version.slice(0, 128)} under another tag.` }
}

/**
 * The verified release of a version, whether applicable or not. No store calls; a few requests within 20 seconds.
 * Throws `version_not_available` with the reason, and `release_source_unreachable`.
 */
export async function findRelease(version: string): Promise<Release> {
  const place = source()
  if (place === undefined) throw notAvailable(version, 'Updates are disabled: PLAT_RELEASE_SOURCE is empty.')
  const isNamed = isVersion(version) && version.length <= 128
  if (!isNamed) throw notAvailable(version, 'It is not a release version.')
  const client = registryClientFor(place.registry, { untilMs: now() + sourceMs })
  return genuine(version, () => releaseAt(client, place.repository, version))
}

/**
 * The release of a digest in a repository (`registry/repository`), read and verified again. Calls and errors as
 * `findRelease`.
 */
export async function releaseByDigest(repository: string, digest: string): Promise<Release> {
  const place = parseReleaseRepository(repository)
  if (place === undefined) throw notAvailable(repository, 'It is not a repository.')
  const client = registryClientFor(place.registry, { untilMs: now() + sourceMs })
  return genuine(digest, () => readRelease(client, place.repository, digest))
}

/**
 * The zip of a release's function, with the signed digest and size. Throws `version_not_available` and
 * `release_source_unreachable`. No store calls; one request.
 */
export async function fetchFunction({ repository, document }: Release, functionName: string): Promise<Uint8Array> {
  const { functions, version } = document
  const [place, wanted] = [
    parseReleaseRepository(repository),
    Object.hasOwn(functions, functionName) && functions[functionName],
  ]
  if (place === undefined || !wanted) throw notAvailable(version, `It has no function ${functionName}.`)
  return reached(async () => {
    try {
      return await registryClientFor(place.registry).blob(place.repository, wanted, wanted.size)
    } catch (error) {
      throw isBroken(error) ? notAvailable(version, error.message) : error
    }
  })
}

async function genuine(what: string, look: () => Promise<Release | InvalidReleaseError>): Promise<Release> {
  const found = await reached(look)
  if ('reason' in found) throw notAvailable(what, found.reason)
  return found
}

const notAvailable = (what: string, reason: string): PlatformError =>
  new PlatformError('version_not_available', `Release ${what.slice(0, 128).toWellFormed()} is not available. ${reason}`)

const retryAfterSeconds = 30

async function reached<Result>(ask: () => Promise<Result>): Promise<Result> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof RegistryError)) throw error
    const message = describeRegistryError(error).slice(0, 1000).toWellFormed()
    throw new PlatformError('release_source_unreachable', message, { retryAfterSeconds }, { cause: error })
  }
}

/** Reads a manifest of the release repository: a release, or the reason why it is not one. */

const documentBytes = 256 * 1024
/** Far more functions than the platform has, each up to Lambda's limit. */
const [functionLimit, functionBytes] = [200, 50 * 1024 * 1024]

/** The reason why something is not a usable release: a sentence for users. */
export interface InvalidReleaseError {
  reason: string
}

/**
 * Reads a tag or digest. The signature by a key of `PLAT_RELEASE_KEYS` is verified before the document is parsed.
 * Throws `RegistryError` if the registry is unreachable; broken content is not a release. No store calls; requests for
 * the manifest, the document, and two or more for signatures.
 */
export async function readRelease(
  client: RegistryClient,
  repository: string,
  reference: string,
): Promise<Release | InvalidReleaseError> {
  try {
    return await read(client, repository, reference)
  } catch (error) {
    if (!isBroken(error)) throw error
    return refused(error.message)
  }
}

/** Whether the registry responded with invalid content, so that a retry would not help. */
export const isBroken = (error: unknown): error is RegistryError =>
  error instanceof RegistryError && ['invalid', 'not_found', 'too_large'].includes(error.problem)

async function read(
  client: RegistryClient,
  repository: string,
  reference: string,
): Promise<Release | InvalidReleaseError> {
  const found = await client.manifest(repository, reference)
  if (found === undefined) return refused('The repository has no such release.')
  const { content, descriptor } = found
  if (!isRelease(content)) return refused('It is not a release of the platform.')
  const verdict = await verifyImage(client, repository, [descriptor.digest], config.PLAT_RELEASE_KEYS, { atMs: now() })
  if (!verdict.isVerified) return refused(verdict.reason)
  const document = parseDocument(await client.blob(repository, content.config, documentBytes))
  if (document === undefined) return refused('Its document is invalid.')
  if (!hasLayersOf(content, document)) return refused('Its layers do not match its document.')
  const { digest } = descriptor
  return { document, repository: `${client.registry}/${repository}`, digest, verifiedBy: verdict.by }
}

/** Limits text from registries in reasons. */
const refused = (reason: string): InvalidReleaseError => ({ reason: reason.slice(0, 500).toWellFormed() })

const isRelease = (content: Manifest | Index): content is Manifest =>
  'layers' in content && content.artifactType === releaseMediaType && content.config.mediaType === releaseMediaType

function parseDocument(bytes: Buffer): ReleaseDocument | undefined {
  try {
    return ReleaseDocument.safeParse(JSON.parse(bytes.toString())).data
  } catch {
    return undefined
  }
}

/** The layers must be exactly the document's functions, so that no registry can omit or add one. */
function hasLayersOf({ layers }: Manifest, { functions }: ReleaseDocument): boolean {
  const named = new Map(layers.map((layer) => [layer.annotations?.[functionAnnotation], layer]))
  const told = Object.entries(functions)
  const isComplete = told.length > 0 && told.length <= functionLimit && told.length === layers.length
  return (
    isComplete &&
    told.every(([name, { digest, size }]) => {
      const layer = named.get(name)
      const isSame = layer?.digest === digest && layer.size === size && layer.mediaType === functionMediaType
      return isSame && size <= functionBytes
    })
  )
}
