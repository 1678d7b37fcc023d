import {
  type Module,
  type ModuleCheck,
  type ModuleDetail,
  moduleErrors,
  type ModuleHealth,
} from '@platform/contract/module'
import { type Caller } from '../caller.ts'
import { iso, now } from '../clock.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item, queryAll } from '../db/table.ts'
import { platformError } from '../error.ts'
import { log } from '../log.ts'
import { isModuleId, ModuleHealthRecord, type ModuleRecord, parseModule, type StoredCheck } from './record.ts'

/** Installed modules as callers see them. They belong to the platform: all organisations see the same. */

/** All modules by id, with their last health check. */
export interface InstalledModules {
  modules: readonly ModuleRecord[]
  /** Ids of modules with invalid records, written by another release of the platform. */
  unreadable: ReadonlySet<string>
  healths: ReadonlyMap<string, ModuleHealthRecord>
}

/** All installed modules, including those being installed or uninstalled. One call per 1 MB. */
export async function readModules(): Promise<InstalledModules> {
  const items = await queryAll(keys.modules())
  const [rows, healths] = [under(items, keys.module('').sk), under(items, keys.moduleHealth('').sk)]
  const modules = readableOf(rows, parseModule)
  return {
    modules: [...modules.values()],
    unreadable: new Set([...rows.keys()].filter((id) => !modules.has(id))),
    healths: readableOf(healths, healthOf),
  }
}

/** The items with this sort key prefix, by the rest of the key. */
function under(items: readonly Item[], prefix: string): Map<string, Item> {
  const own = items.filter(({ sk }) => String(sk).startsWith(prefix))
  return new Map(own.map((item) => [String(item['sk']).slice(prefix.length), item]))
}

/** An invalid record must not block the others. */
function readableOf<Row>(items: ReadonlyMap<string, Item>, parse: (item: Item) => Row): Map<string, Row> {
  const rows = new Map<string, Row>()
  for (const [id, item] of items) {
    try {
      rows.set(id, parse(item))
    } catch (cause) {
      log('error', 'Stored module record is invalid', { moduleId: id, cause })
    }
  }
  return rows
}

const healthOf = (item: Item): ModuleHealthRecord => ModuleHealthRecord.parse(item)

/** The installed modules, by id. One call. */
export async function list(): Promise<{ items: Module[] }> {
  const { modules, healths } = await readModules()
  return { items: modules.map((row) => moduleView(row, healths.get(row.id))) }
}

/** One installed module. One call. */
export async function read(moduleId: string): Promise<Module> {
  const [row, health] = await readRows(moduleId)
  return moduleView(row, health)
}

async function readRows(moduleId: string): Promise<[ModuleRecord, ModuleHealthRecord | undefined]> {
  if (!isModuleId(moduleId)) throw platformError('module_not_found')
  const [item, health] = await getConsistent([keys.module(moduleId), keys.moduleHealth(moduleId)])
  if (item === undefined) throw platformError('module_not_found')
  return [parseModule(item), health && healthOf(health)]
}

/** The installed modules as a caller may see them. One call. */
export const listFor = async (caller: Caller): Promise<{ items: Module[] }> => ({
  items: (await list()).items.map((module) => seenBy(caller, module)),
})

/** One installed module as a caller may see it, with its manifest details. One call. */
export async function readFor(caller: Caller, moduleId: string): Promise<ModuleDetail> {
  const [row, health] = await readRows(moduleId)
  const { navSlots, backgroundJobs } = row.release.manifest.spec
  return { ...seenBy(caller, moduleView(row, health)), navSlots, backgroundJobs }
}

/**
 * A module's error text may contain data of any organisation: callers who cannot install modules see a general message.
 */
function seenBy({ permissions }: Caller, { lastError, ...module }: Module): Module {
  if (lastError === undefined) return module
  const message = permissions.has('modules:install') ? lastError.message : moduleErrors[lastError.code]
  return { ...module, lastError: { ...lastError, message } }
}

/** Missed health checks after which a result is stale. */
const staleAfterTicks = 3

/** Whether the last result is too old to be trusted. */
export const isStale = (checkedAtMs: number): boolean =>
  checkedAtMs + staleAfterTicks * config.PLAT_MODULE_SUPERVISION_INTERVAL_SECONDS * 1000 < now()

/** Whether the module serves, even during an operation. */
export const isServing = ({ state }: ModuleRecord): boolean => state === 'Running' || state === 'Upgrading'

/** A first installation in progress does not count; an uninstallation in progress still does. */
export const isInstalled = (row: ModuleRecord | undefined): row is ModuleRecord =>
  row !== undefined && (row.state !== 'Installing' || row.installedAtMs !== undefined)

/** A module's current health. */
export function currentHealth(row: ModuleRecord, health: ModuleHealthRecord | undefined): ModuleHealth {
  if (row.state === 'Failed') return 'Unhealthy'
  if (!isServing(row) || health === undefined) return 'Unknown'
  return health.checks.some(({ checkedAtMs }) => isStale(checkedAtMs)) ? 'Unknown' : health.health
}

/** The current health checks. A failed module is not checked any more and is Unhealthy. */
export function currentChecks(
  { state, error }: ModuleRecord,
  health: ModuleHealthRecord | undefined,
): readonly StoredCheck[] {
  const { checks = [] } = health ?? {}
  if (state !== 'Failed' || error === undefined || health === undefined) return checks
  const seen = { status: 'Unhealthy', description: `It has failed: ${error.code}.`, checkedAtMs: error.atMs } as const
  return checks.length > 0
    ? checks.map((check) => ({ ...check, ...seen }))
    : [{ name: 'health', tags: ['degradable'], durationMs: 0, ...seen }]
}

const checkView = ({ name, status, tags, description, durationMs, checkedAtMs }: StoredCheck): ModuleCheck => ({
  name,
  status,
  tags,
  description,
  durationMs,
  checkedAt: iso(checkedAtMs),
})

/** The API representation of a module. */
function moduleView(row: ModuleRecord, health: ModuleHealthRecord | undefined): Module {
  const { repository, digest, version, manifest, isVerified, verifiedBy } = row.release
  return {
    id: row.id,
    name: manifest.metadata.name,
    description: manifest.metadata.description,
    version,
    state: row.state,
    health: currentHealth(row, health),
    checks: currentChecks(row, health).map(checkView),
    verified: isVerified,
    ...(verifiedBy !== undefined && { verifiedBy }),
    image: `${repository}@${digest}`,
    ...(row.deployment && { isolation: row.deployment.isolation }),
    apiBasePath: manifest.spec.apiBasePath,
    warnings: row.warnings,
    ...(row.error && { lastError: { code: row.error.code, message: row.error.message, at: iso(row.error.atMs) } }),
    ...(row.jobId !== undefined && { jobId: row.jobId }),
    ...(row.installedAtMs !== undefined && { installedAt: iso(row.installedAtMs) }),
    updatedAt: iso(row.updatedAtMs),
  }
}
