import type { CatalogItem } from '@platform/contract/catalog'
import type { Caller } from '../../caller.ts'
import { readCatalog } from './catalog.ts'
import { CatalogScanRecord } from './record.ts'
import { isNewer, latestOf, type CatalogChoice, choicesByModule } from './select.ts'
import { commit } from '../../outbox/commit.ts'
import { iso } from '../../clock.ts'
import * as keys from '../../db/keys.ts'
import { get } from '../../db/table.ts'
import { isInstalled, readModules } from '../module.ts'
import type { ModuleRecord } from '../record.ts'
import { enqueueCatalogScan } from '../../aws/queues.ts'

export interface CatalogFilter {
  installed?: 'true' | 'false' | undefined
  verified?: 'true' | 'false' | undefined
  search?: string | undefined
}

export async function list(filter: CatalogFilter) {
  const [{ repositories, scan }, { modules }] = await Promise.all([readCatalog(), readModules()])
  const installedById = new Map(modules.map((module) => [module.id, module]))
  const items = [...choicesByModule(repositories)]
    .flatMap(([id, choices]) => itemsOf(choices, installedById.get(id)))
    .filter((item) => matches(item, filter))
    .toSorted((a, b) => (a.name + a.id < b.name + b.id ? -1 : 1))
  return {
    items,
    totalCount: items.length,
    ...(scan && { scannedAt: iso(scan.scannedAtMs) }),
    problems: scan?.problems ?? [],
  }
}

function itemsOf(choices: readonly CatalogChoice[], module: ModuleRecord | undefined): CatalogItem[] {
  const release = latestOf(choices)
  if (release === undefined) return []
  const { moduleId: id, name, version, description, events, isVerified, verifiedBy, reason, reference } = release
  const installedVersion = isInstalled(module) ? module.release.version : undefined
  return [
    {
      id,
      name,
      version,
      description,
      events,
      verified: isVerified,
      ...(verifiedBy !== undefined && { verifiedBy }),
      ...(!isVerified && reason !== undefined && { unverifiedReason: reason }),
      installed: installedVersion !== undefined,
      ...(installedVersion !== undefined && { installedVersion }),
      updateAvailable: installedVersion !== undefined && isNewer(version, installedVersion),
      catalogSource: reference,
    },
  ]
}

const matchesFlag = (filter: 'true' | 'false' | undefined, value: boolean): boolean =>
  filter === undefined || (filter === 'true') === value

function matches({ installed, verified, name, description }: CatalogItem, filter: CatalogFilter): boolean {
  const text = keys.fold(`${name} ${description}`)
  const terms = keys
    .fold(filter.search ?? '')
    .split(/\s+/)
    .filter(Boolean)
  return (
    matchesFlag(filter.installed, installed) &&
    matchesFlag(filter.verified, verified) &&
    terms.every((term) => text.includes(term))
  )
}

/** Returns the time of the last scan; the new scan runs in the background. */
export async function scan(caller: Caller): Promise<{ scannedAt?: string }> {
  const item = await get(keys.catalogScan())
  const response = item ? { scannedAt: iso(CatalogScanRecord.parse(item).scannedAtMs) } : {}
  await commit(caller, { writes: [], response, audit: { action: 'catalog.scan', resource: 'catalog' } })
  await enqueueCatalogScan(caller.organisationId)
  return response
}
