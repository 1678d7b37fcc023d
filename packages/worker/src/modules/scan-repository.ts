import { releaseLimit } from '@platform/core/modules/catalog/catalog'
import {
  type InvalidRelease,
  type CatalogRelease,
  type CatalogRepositoryRecord,
} from '@platform/core/modules/catalog/record'
import { now } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { PlatformError } from '@platform/core/error'
import { manifestOf } from '@platform/core/modules/image-manifest'
import { claimsOf } from '@platform/core/modules/release'
import { forEachLimit } from '@platform/core/lib/async'
import { type RegistryClient } from '@platform/oci/client'
import { RegistryError } from '@platform/oci/error'
import { readImage } from '@platform/oci/image'
import { verifyImage } from '@platform/oci/signature/verify'
import compareBuild from 'semver/functions/compare-build.js'
import valid from 'semver/functions/valid.js'

/** Requests to one repository at once. */
const atOnce = 4
/** Tags that are looked at: more than one may lead to a release. */
const tagLimit = 2 * releaseLimit
/** And so many are listed at most. */
const listedLimit = 5000
const [reasonLength, problemLength] = [500, 150]

/** A repository that is looked at. */
export interface Repository {
  client: RegistryClient
  name: string
}

/** What a repository holds. */
export interface Holdings {
  releases: CatalogRelease[]
  others: InvalidRelease[]
  problems: string[]
}

/**
 * What the tags of a repository lead to. What an earlier scan has found (`before`) is not read again, because a digest stays what
 * it is; who has signed it is: a signature may come later, and a key may leave the trust list. Throws `RegistryFailure`
 * where the tags cannot be had. A request for each tag, two for each release, and a few for each new one.
 */
export async function scanRepository(repository: Repository, before?: CatalogRepositoryRecord): Promise<Holdings> {
  const problems: string[] = []
  const digests = await digestsOf(repository, problems)
  const known = new Map<string, CatalogRelease | InvalidRelease>()
  for (const each of [...(before?.releases ?? []), ...(before?.others ?? [])]) known.set(each.digest, each)
  const releases: CatalogRelease[] = []
  const others: InvalidRelease[] = []
  const keep = (each: CatalogRelease | InvalidRelease) => ('moduleId' in each ? releases.push(each) : others.push(each))
  await forEachLimit(atOnce, digests, async (digest) => {
    try {
      const each = known.get(digest) ?? (await readRelease(repository, digest))
      keep('moduleId' in each ? await judged(repository, each) : each)
    } catch (error) {
      if (!(error instanceof RegistryError)) throw error
      problems.push(error.message)
      // What cannot be asked for just now is as it was.
      const each = known.get(digest)
      if (each !== undefined) keep(each)
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

/** Signatures and attestations stand beside images, under tags that are made of digests. */
const isOfDigest = (tag: string): boolean => /^sha256-[0-9a-f]{64}/.test(tag)

/** What the tags of a repository lead to, each once; of too many tags those of the newest versions. */
async function digestsOf({ client, name }: Repository, problems: string[]): Promise<string[]> {
  const tags: string[] = []
  for await (const tag of client.tags(name)) {
    if (!isOfDigest(tag)) tags.push(tag)
    // Sorting millions of them would keep the process from everything else.
    if (tags.length === listedLimit) break
  }
  if (tags.length > tagLimit) problems.push(`It has ${tags.length} tags; ${tagLimit} of them are looked at.`)
  const digests = new Set<string>()
  await forEachLimit(atOnce, tags.toSorted(byVersion).slice(0, tagLimit), async (tag) => {
    const descriptor = await client.resolve(name, tag)
    if (descriptor !== undefined && digests.size < releaseLimit) digests.add(descriptor.digest)
  })
  return [...digests]
}

function byVersion(a: string, b: string): number {
  const [first, second] = [valid(a), valid(b)]
  if (first === null || second === null) return Number(first === null) - Number(second === null) || (a < b ? 1 : -1)
  return compareBuild(second, first)
}

/** What a digest stands for. */
async function readRelease({ client, name }: Repository, digest: string): Promise<CatalogRelease | InvalidRelease> {
  try {
    const image = await readImage(client, name, digest)
    const claims = image && claimsOf(image)
    if (image === undefined || claims === undefined) return { digest }
    const { metadata } = await manifestOf({ client, image }, { manifestUrl: undefined, isVerified: false })
    const { id, version, description } = metadata
    if (claims.id !== id || claims.version !== version) return other(digest, 'labels and module.json disagree')
    const createdAtMs = Date.parse(image.config.created ?? '')
    return {
      moduleId: id,
      version,
      digest,
      name: metadata.name,
      description,
      isVerified: false,
      ...(Number.isFinite(createdAtMs) && { createdAtMs }),
      ...(image.digest !== digest && { imageDigest: image.digest }),
    }
  } catch (error) {
    if (error instanceof PlatformError) return other(digest, error.message)
    // Broken for good, unlike what could not be had just now.
    if (error instanceof RegistryError && error.problem === 'invalid') return { digest }
    throw error
  }
}

const other = (digest: string, problem: string): InvalidRelease => ({
  digest,
  problem: `${digest.slice(0, 19)}…: ${problem}`.slice(0, problemLength).toWellFormed(),
})

/** A release and who vouches for it now. */
async function judged({ client, name }: Repository, release: CatalogRelease): Promise<CatalogRelease> {
  const { isVerified: _, verifiedBy: __, reason: ___, ...facts } = release
  const digests = [release.digest, release.imageDigest ?? release.digest]
  const verdict = await verifyImage(client, name, digests, config.PLAT_MODULE_KEYS, { atMs: now() })
  if (verdict.isVerified) return { ...facts, isVerified: true, verifiedBy: verdict.by }
  return { ...facts, isVerified: false, reason: verdict.reason.slice(0, reasonLength).toWellFormed() }
}
