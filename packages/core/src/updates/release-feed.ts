import { version as Version } from '@platform/contract/manifest'
import { type RegistryClient } from '@platform/oci/client'
import { RegistryError } from '@platform/oci/error'
import compareBuild from 'semver/functions/compare-build.js'
import parse from 'semver/functions/parse.js'
import { isNewer } from '../modules/catalog/select.ts'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import { PlatformError } from '../error.ts'
import { log } from '../log.ts'
import { registryClientFor, describeRegistryError } from '../modules/registries.ts'
import { type Release, tagOf } from './release-document.ts'
import { isStable, findIncompatibility } from './compatibility.ts'
import { isBroken, readRelease, type InvalidReleaseError } from './release-read.ts'
import { type ReleaseRepository, parseReleaseRepository } from '../lib/settings/release-source.ts'

/**
 * The releases of the platform, as the release repository has them (D50). Nothing that is there is believed but what a key of
 * `PLAT_RELEASE_KEYS` has signed, and whatever is there, looking at it ends: after so many tags, releases and seconds.
 */

const sourceMs = 20_000
const [tagLimit, candidateLimit] = [20_000, 20]

/** What was found, newest first: the newest release that can be applied, and newer ones that cannot. */
export interface Feed {
  release?: Release
  refused: { version: string; reason: string }[]
}

/** Where releases are; undefined where updates are off. */
const source = (): ReleaseRepository | undefined => parseReleaseRepository(config.PLAT_RELEASE_SOURCE)

/**
 * The newest stable release above `current` that can be applied to it; none where updates are off. No store calls; a request
 * for each page of tags and a handful for each of at most 20 releases, 20 seconds in all. Throws
 * `release_source_unreachable`.
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

/** The newest stable versions above `current` that tags name, newest first. Tags that are no versions are others' business. */
async function candidates(client: RegistryClient, repository: string, current: string): Promise<string[]> {
  const versions = (await tagsOf(client, repository)).flatMap((tag) => versionOf(tag) ?? [])
  const newer = new Set(versions.filter((version) => isStable(version) && isNewer(version, current)))
  const parsed = [...newer].map((version) => ({ version, order: parse(version) ?? version }))
  const newestFirst = parsed.toSorted((a, b) => compareBuild(b.order, a.order))
  return newestFirst.slice(0, candidateLimit).map(({ version }) => version)
}

/** A repository that is not there has no releases: nobody has made one yet. */
async function tagsOf(client: RegistryClient, repository: string): Promise<string[]> {
  const tags: string[] = []
  try {
    for await (const tag of client.tags(repository)) {
      if (tags.push(tag) === tagLimit) break
    }
  } catch (error) {
    if (!(error instanceof RegistryError && error.problem === 'not_found')) throw error
    log('info', 'There is no repository of releases', { source: config.PLAT_RELEASE_SOURCE })
  }
  return tags
}

/** The version that a tag is of; undefined for what is none. A tag has at most 128 characters. */
const versionOf = (tag: string): string | undefined => {
  const version = tag.length <= 128 ? tag.replace('_', '+') : ''
  return isVersion(version) ? version : undefined
}

const isVersion = (text: string): boolean => Version.safeParse(text).success

/** Somebody who may push could put an old release under a new tag: what has signed is the document, and that says which. */
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
 * The release of a version, genuine, whether it can be applied or not. No store calls; a handful of requests, 20 seconds in
 * all. Throws `version_not_available` with the reason, and `release_source_unreachable`.
 */
export async function findRelease(version: string): Promise<Release> {
  const place = source()
  if (place === undefined) throw notAvailable(version, 'Updates are off: PLAT_RELEASE_SOURCE names no repository.')
  const isNamed = isVersion(version) && version.length <= 128
  if (!isNamed) throw notAvailable(version, 'It is no version of a release.')
  const client = registryClientFor(place.registry, { untilMs: now() + sourceMs })
  return genuine(version, () => releaseAt(client, place.repository, version))
}

/**
 * The release that a digest of a repository (`registry/repository`) is, looked at and verified anew. As `findRelease`.
 */
export async function releaseByDigest(repository: string, digest: string): Promise<Release> {
  const place = parseReleaseRepository(repository)
  if (place === undefined) throw notAvailable(repository, 'It names no repository.')
  const client = registryClientFor(place.registry, { untilMs: now() + sourceMs })
  return genuine(digest, () => readRelease(client, place.repository, digest))
}

/**
 * The zip of a function of a release, as the release has it: digest and size are those that were signed. Throws
 * `version_not_available`, and `release_source_unreachable`. No store calls; one request.
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
