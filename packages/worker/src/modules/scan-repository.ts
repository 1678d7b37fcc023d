import { releaseLimit } from '@platform/core/modules/catalog/catalog'
import type { InvalidRelease, CatalogRelease, CatalogRepositoryRecord } from '@platform/core/modules/catalog/record'
import { now } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { PlatformError } from '@platform/core/error'
import { manifestOf } from '@platform/core/modules/image-manifest'
import { moduleLabelsOf } from '@platform/core/modules/release'
import { forEachLimit } from '@platform/core/lib/async'
import type { RegistryClient } from '@platform/oci/client'
import { RegistryError } from '@platform/oci/error'
import { readImage } from '@platform/oci/image'
import { verifyImage } from '@platform/oci/signature/verify'
import compareBuild from 'semver/functions/compare-build.js'
import valid from 'semver/functions/valid.js'

const maxConcurrentRequests = 4
/** Maximum number of resolved tags: several may refer to one release. */
const maxResolvedTags = 2 * releaseLimit
const maxListedTags = 5000
const [maxReasonLength, maxProblemLength] = [500, 150]

export interface Repository {
  client: RegistryClient
  name: string
}

export interface RepositoryContents {
  releases: CatalogRelease[]
  others: InvalidRelease[]
  problems: string[]
}

/**
 * Returns the releases that the tags of a repository refer to. Does not read releases from an earlier scan (`before`)
 * again, because digests are immutable, but verifies their signatures: a signature may be added later, and a key may
 * leave the trust list. Throws `RegistryError` if the tags cannot be listed.
 */
export async function scanRepository(
  repository: Repository,
  before?: CatalogRepositoryRecord,
): Promise<RepositoryContents> {
  const problems: string[] = []
  const digests = await digestsOf(repository, problems)
  const knownReleases = new Map<string, CatalogRelease | InvalidRelease>()
  for (const release of [...(before?.releases ?? []), ...(before?.others ?? [])])
    knownReleases.set(release.digest, release)
  const releases: CatalogRelease[] = []
  const others: InvalidRelease[] = []
  const add = (release: CatalogRelease | InvalidRelease) =>
    'moduleId' in release ? releases.push(release) : others.push(release)
  await forEachLimit(maxConcurrentRequests, digests, async (digest) => {
    try {
      const release = knownReleases.get(digest) ?? (await readRelease(repository, digest))
      add('moduleId' in release ? await withVerification(repository, release) : release)
    } catch (error) {
      if (!(error instanceof RegistryError)) throw error
      problems.push(error.message)
      // A release that is unreachable at present keeps its previous state.
      const release = knownReleases.get(digest)
      if (release !== undefined) add(release)
    }
  })
  return {
    releases: releases.toSorted(newestFirst),
    others: others.toSorted((a, b) => (a.digest < b.digest ? -1 : 1)),
    problems: [...problems, ...others.flatMap(({ problem }) => problem ?? [])],
  }
}

const newestFirst = (a: CatalogRelease, b: CatalogRelease): number =>
  compareBuild(b.version, a.version) || (b.createdAtMs ?? 0) - (a.createdAtMs ?? 0) || (a.digest < b.digest ? -1 : 1)

/** Signatures and attestations are stored next to images, under tags derived from digests. */
const isOfDigest = (tag: string): boolean => /^sha256-[0-9a-f]{64}/.test(tag)

/**
 * Returns the unique digests of a repository's tags, at most `releaseLimit`. If there are too many tags, reads those of
 * the newest versions among the first `maxListedTags`.
 */
async function digestsOf({ client, name }: Repository, problems: string[]): Promise<string[]> {
  const tags: string[] = []
  for await (const tag of client.tags(name)) {
    if (!isOfDigest(tag)) tags.push(tag)
    // Sorting millions of tags would block the process.
    if (tags.length === maxListedTags) break
  }
  if (tags.length > maxResolvedTags)
    problems.push(`It has ${tags.length} tags; ${maxResolvedTags} of them are scanned.`)
  const digests = new Set<string>()
  await forEachLimit(maxConcurrentRequests, tags.toSorted(compareVersions).slice(0, maxResolvedTags), async (tag) => {
    const descriptor = await client.resolve(name, tag)
    if (descriptor !== undefined && digests.size < releaseLimit) digests.add(descriptor.digest)
  })
  return [...digests]
}

function compareVersions(a: string, b: string): number {
  const [first, second] = [valid(a), valid(b)]
  if (first === null || second === null) return Number(first === null) - Number(second === null) || (a < b ? 1 : -1)
  return compareBuild(second, first)
}

/**
 * Reads a release. Returns an invalid release if the image is not a valid module; its `problem` is set if the image is
 * readable and has the labels of a module.
 */
async function readRelease({ client, name }: Repository, digest: string): Promise<CatalogRelease | InvalidRelease> {
  try {
    const image = await readImage(client, name, digest)
    const labels = image && moduleLabelsOf(image)
    if (image === undefined || labels === undefined) return { digest }
    const { metadata, spec } = await manifestOf({ client, image }, { manifestUrl: undefined, isVerified: false })
    const { id, version, description } = metadata
    if (labels.id !== id || labels.version !== version) return invalidRelease(digest, 'labels and module.json disagree')
    const createdAtMs = Date.parse(image.config.created ?? '')
    return {
      moduleId: id,
      version,
      digest,
      name: metadata.name,
      description,
      events: spec.events,
      isVerified: false,
      ...(Number.isFinite(createdAtMs) && { createdAtMs }),
      ...(image.digest !== digest && { imageDigest: image.digest }),
    }
  } catch (error) {
    if (error instanceof PlatformError) return invalidRelease(digest, error.message)
    // The image is permanently invalid, unlike one that is unreachable at present.
    if (error instanceof RegistryError && error.problem === 'invalid') return { digest }
    throw error
  }
}

const invalidRelease = (digest: string, problem: string): InvalidRelease => ({
  digest,
  problem: `${digest.slice(0, 19)}…: ${problem}`.slice(0, maxProblemLength).toWellFormed(),
})

async function withVerification({ client, name }: Repository, release: CatalogRelease): Promise<CatalogRelease> {
  const { isVerified: _, verifiedBy: __, reason: ___, ...facts } = release
  const digests = [release.digest, release.imageDigest ?? release.digest]
  const verdict = await verifyImage(client, name, digests, config.PLAT_MODULE_KEYS, { atMs: now() })
  if (verdict.isVerified) return { ...facts, isVerified: true, verifiedBy: verdict.by }
  return { ...facts, isVerified: false, reason: verdict.reason.slice(0, maxReasonLength).toWellFormed() }
}
