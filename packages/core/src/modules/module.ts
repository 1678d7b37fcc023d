import {
  type Module,
  type ModuleCheck,
  type ModuleDetail,
  moduleErrors,
  type ModuleHealth,
} from '@platform/contract/module'
import type { Caller } from '../caller.ts'
import { iso, now } from '../clock.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item, queryAll } from '../db/table.ts'
import { platformError } from '../error.ts'
import { log } from '../log.ts'
import {
  isInformational,
  isModuleId,
  missedLimit,
  ModuleHealthRecord,
  type ModuleRecord,
  parseModule,
  type StoredCheck,
} from './record.ts'

/** Modules belong to the platform, so all organisations see the same modules. */

export interface InstalledModules {
  modules: readonly ModuleRecord[]
  /** Ids of modules whose records do not match the schema; another release of the platform may have written them. */
  invalidIds: ReadonlySet<string>
  healthById: ReadonlyMap<string, ModuleHealthRecord>
}

/** Includes modules that are being installed or uninstalled. */
export async function readModules(): Promise<InstalledModules> {
  const items = await queryAll(keys.modules())
  const [records, health] = [itemsById(items, keys.module('').sk), itemsById(items, keys.moduleHealth('').sk)]
  const modules = parseValid(records, parseModule)
  return {
    modules: [...modules.values()],
    invalidIds: new Set([...records.keys()].filter((id) => !modules.has(id))),
    healthById: parseValid(health, parseHealth),
  }
}

function itemsById(items: readonly Item[], prefix: string): Map<string, Item> {
  const matchingItems = items.filter(({ sk }) => String(sk).startsWith(prefix))
  return new Map(matchingItems.map((item) => [String(item['sk']).slice(prefix.length), item]))
}

/** Skips invalid records, so that they do not block the others. */
function parseValid<Parsed>(items: ReadonlyMap<string, Item>, parse: (item: Item) => Parsed): Map<string, Parsed> {
  const records = new Map<string, Parsed>()
  for (const [id, item] of items) {
    try {
      records.set(id, parse(item))
    } catch (cause) {
      log('error', 'Stored module record is invalid', { moduleId: id, cause })
    }
  }
  return records
}

const parseHealth = (item: Item): ModuleHealthRecord => ModuleHealthRecord.parse(item)

export async function list(): Promise<{ items: Module[] }> {
  const { modules, healthById } = await readModules()
  return { items: modules.map((record) => moduleView(record, healthById.get(record.id))) }
}

export async function read(moduleId: string): Promise<Module> {
  const [record, health] = await readRecords(moduleId)
  return moduleView(record, health)
}

async function readRecords(moduleId: string): Promise<[ModuleRecord, ModuleHealthRecord | undefined]> {
  if (!isModuleId(moduleId)) throw platformError('module_not_found')
  const [item, health] = await getConsistent([keys.module(moduleId), keys.moduleHealth(moduleId)])
  if (item === undefined) throw platformError('module_not_found')
  return [parseModule(item), health && parseHealth(health)]
}

export const listFor = async (caller: Caller): Promise<{ items: Module[] }> => ({
  items: (await list()).items.map((module) => redactFor(caller, module)),
})

export async function readFor(caller: Caller, moduleId: string): Promise<ModuleDetail> {
  const [record, health] = await readRecords(moduleId)
  const { navSlots, backgroundJobs, events, permissionsRequired } = record.release.manifest.spec
  return { ...redactFor(caller, moduleView(record, health)), navSlots, backgroundJobs, events, permissionsRequired }
}

/**
 * Error texts may contain data of any organisation, so callers who cannot install modules receive a general message.
 */
function redactFor({ permissions }: Caller, { lastError, ...module }: Module): Module {
  if (lastError === undefined) return module
  const message = permissions.has('modules:install') ? lastError.message : moduleErrors[lastError.code]
  return { ...module, lastError: { ...lastError, message } }
}

/** The number of supervision intervals after which the result of a check is outdated. */
const staleAfterIntervals = 3

export const isStale = (checkedAtMs: number): boolean =>
  Math.abs(now() - checkedAtMs) > staleAfterIntervals * config.PLAT_MODULE_SUPERVISION_INTERVAL_SECONDS * 1000

/** A module serves requests even during an upgrade. */
export const isServing = ({ state }: ModuleRecord): boolean => state === 'Running' || state === 'Upgrading'

/** A module counts as installed while it is being uninstalled, but not during its first installation. */
export const isInstalled = (record: ModuleRecord | undefined): record is ModuleRecord =>
  record !== undefined && (record.state !== 'Installing' || record.installedAtMs !== undefined)

export function currentHealth(record: ModuleRecord, health: ModuleHealthRecord | undefined): ModuleHealth {
  if (record.state === 'Failed') return 'Unhealthy'
  if (!isServing(record) || health === undefined) return 'Unknown'
  return health.checks.some(({ checkedAtMs }) => isStale(checkedAtMs)) ? 'Unknown' : health.health
}

/**
 * A failed module is no longer checked, so its stored checks are reported as Unhealthy. Adds a check with the reason if
 * no check shows that the module is Unhealthy, or if background jobs fail.
 */
export function currentChecks(
  { state, error }: ModuleRecord,
  health: ModuleHealthRecord | undefined,
): readonly StoredCheck[] {
  if (health === undefined) return []
  const hasFailed = state === 'Failed' && error !== undefined
  const failure = hasFailed
    ? { description: `It has failed: ${error.code}.`, checkedAtMs: error.atMs }
    : missedHeartbeat(health)
  const checks = hasFailed
    ? health.checks.map((check) => ({ ...check, ...failure, status: 'Unhealthy' as const }))
    : health.checks
  const isShown = checks.some(({ status, tags }) => status === 'Unhealthy' && !isInformational(tags))
  if (failure === undefined || (isShown && !('name' in failure))) return checks
  return [...checks, { name: 'health', tags: ['degradable'], status: 'Unhealthy', durationMs: 0, ...failure }]
}

function missedHeartbeat({ checks, missed, missedRuns, slots }: ModuleHealthRecord) {
  const checkedAtMs = Math.max(0, ...checks.map((check) => check.checkedAtMs))
  if (missed >= missedLimit) return { description: 'The health endpoint does not respond.', checkedAtMs }
  const jobIds = Object.keys(missedRuns).filter((id) => (missedRuns[id] ?? 0) >= missedLimit)
  if (jobIds.length === 0) return undefined
  const description = `Failed in the last ${missedLimit} or more runs: ${jobIds.join(', ')}.`
  return {
    name: 'background-jobs',
    description: description.slice(0, 500),
    checkedAtMs: Math.max(checkedAtMs, ...jobIds.map((id) => slots[id] ?? 0)),
  }
}

const checkView = ({ name, status, tags, description, durationMs, checkedAtMs }: StoredCheck): ModuleCheck => ({
  name,
  status,
  tags,
  description,
  durationMs,
  checkedAt: iso(checkedAtMs),
})

function moduleView(record: ModuleRecord, health: ModuleHealthRecord | undefined): Module {
  const { repository, digest, version, manifest, isVerified, verifiedBy } = record.release
  return {
    id: record.id,
    name: manifest.metadata.name,
    description: manifest.metadata.description,
    version,
    state: record.state,
    health: currentHealth(record, health),
    checks: currentChecks(record, health).map(checkView),
    verified: isVerified,
    ...(verifiedBy !== undefined && { verifiedBy }),
    image: `${repository}@${digest}`,
    ...(record.deployment && { isolation: record.deployment.isolation }),
    apiBasePath: manifest.spec.apiBasePath,
    warnings: record.warnings,
    ...(record.error && {
      lastError: { code: record.error.code, message: record.error.message, at: iso(record.error.atMs) },
    }),
    ...(record.jobId !== undefined && { jobId: record.jobId }),
    ...(record.installedAtMs !== undefined && { installedAt: iso(record.installedAtMs) }),
    updatedAt: iso(record.updatedAtMs),
  }
}
