import { readCatalog, storeCatalog } from '@platform/core/modules/catalog/catalog'
import type { CatalogRelease, CatalogRepositoryRecord } from '@platform/core/modules/catalog/record'
import { elapsedMs, now } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { jitter } from '@platform/core/id'
import { log } from '@platform/core/log'
import { forEachLimit } from '@platform/core/lib/async'
import { registryClientFor } from '@platform/core/modules/registries'
import { isInSource, parseSources, type Source } from '@platform/core/lib/settings/module-sources'
import type { RegistryClient } from '@platform/oci/client'
import { RegistryError } from '@platform/oci/error'
import { scanRepository } from './scan-repository.ts'

/** Time limit for one registry. Repositories that were not read by then keep their state until the next scan. */
const registryLimitMs = 60_000
const [maxRepositories, maxConcurrentRepositories] = [1000, 4]

interface ScanTarget {
  reference: string
  name: string
  sourceIndex: number
}

interface ScanResult {
  records: CatalogRepositoryRecord[]
  problems: string[]
}

/**
 * Scans different registries concurrently and stores the results. An error of a repository or registry is recorded as a
 * problem, and its known releases are kept.
 */
export async function scan(setting: string = config.PLAT_MODULE_SOURCES): Promise<void> {
  const before = await readCatalog()
  const knownByReference = new Map(before.repositories.map((record) => [record.reference, record]))
  const numberedSources = parseSources(setting).map((source, sourceIndex) => ({ source, sourceIndex }))
  const registries = [...Map.groupBy(numberedSources, ({ source }) => source.registry)]
  const results = await Promise.all(
    registries.map(([registry, registrySources]) => scanRegistry(registry, registrySources, knownByReference)),
  )
  const repositories = results.flatMap(({ records }) => records)
  const scanSummary = { scannedAtMs: now(), problems: results.flatMap((each) => each.problems) }
  await storeCatalog({ repositories, scan: scanSummary }, before)
  log('info', 'Module sources scanned', {
    repositories: repositories.length,
    problems: scanSummary.problems,
  })
}

type KnownRecords = ReadonlyMap<string, CatalogRepositoryRecord>

async function scanRegistry(
  registry: string,
  sources: readonly { source: Source; sourceIndex: number }[],
  known: KnownRecords,
): Promise<ScanResult> {
  const client = registryClientFor(registry, { untilMs: elapsedMs() + registryLimitMs })
  const results: ScanResult = { records: [], problems: [] }
  const targets = await targetsOf(client, sources, known, results.problems)
  let isDown = false
  await forEachLimit(maxConcurrentRepositories, targets, async ({ reference, name, sourceIndex }) => {
    const before = known.get(reference)
    try {
      if (isDown) throw new RegistryError('unreachable', '')
      const { problems, releases, others } = await scanRepository({ client, name }, before)
      results.records.push({ reference, sourceIndex, releases, others })
      results.problems.push(...problems.map((problem) => `${reference}: ${problem}`))
    } catch (error) {
      // An unreachable registry is not called again: each further repository would wait for the same timeout.
      if (!isDown) results.problems.push(`${reference}: ${describeError(error, reference)}`)
      isDown ||= error instanceof RegistryError && error.problem === 'unreachable'
      if (before !== undefined)
        results.records.push({ ...before, sourceIndex, releases: before.releases.map(withCurrentTrust) })
    }
  })
  return results
}

function describeError(error: unknown, reference: string): string {
  if (error instanceof RegistryError) return error.message
  log('error', 'Failed to scan a repository', { reference, cause: error })
  return 'The scan failed; see the log.'
}

/** Returns the repositories of one registry's sources. If the registry cannot list them, returns the known ones. */
async function targetsOf(
  client: RegistryClient,
  sources: readonly { source: Source; sourceIndex: number }[],
  known: KnownRecords,
  problems: string[],
): Promise<ScanTarget[]> {
  const { registry } = client
  const targets = new Map<string, ScanTarget>()
  for (const { source, sourceIndex } of sources) {
    for (const name of source.isWhole ? await listRepositories(client, source, known, problems) : [source.repository]) {
      const reference = `${registry}/${name}`
      if (!targets.has(reference)) targets.set(reference, { reference, name, sourceIndex })
    }
  }
  if (targets.size > maxRepositories) problems.push(`${registry}: only ${maxRepositories} repositories are scanned.`)
  const scannedTargets = [...targets.values()].slice(0, maxRepositories)
  // Starts at a random repository, because a scan that reaches the time limit skips the last ones.
  const start = Math.floor(jitter() * scannedTargets.length)
  return [...scannedTargets.slice(start), ...scannedTargets.slice(0, start)]
}

async function listRepositories(
  client: RegistryClient,
  source: Source,
  known: KnownRecords,
  problems: string[],
): Promise<string[]> {
  const names: string[] = []
  try {
    for await (const name of client.repositories()) {
      if (isInSource(source, name)) names.push(name)
      if (names.length > maxRepositories) break
    }
    return names
  } catch (error) {
    problems.push(`${client.registry}: ${describeError(error, client.registry)}`)
    const prefix = `${client.registry}/`
    const before = [...known.keys()].filter((reference) => reference.startsWith(prefix))
    return before.map((reference) => reference.slice(prefix.length)).filter((name) => isInSource(source, name))
  }
}

/** Updates a release that could not be scanned: it is no longer verified if its key has left the trust list. */
function withCurrentTrust(release: CatalogRelease): CatalogRelease {
  const { verifiedBy, ...facts } = release
  const isTrusted = config.PLAT_MODULE_KEYS.some(({ name }) => name === verifiedBy)
  return !release.isVerified || isTrusted
    ? release
    : { ...facts, isVerified: false, reason: 'Its key is no longer trusted.' }
}
