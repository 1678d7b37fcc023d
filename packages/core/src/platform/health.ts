import type { HealthCheck, Readiness } from '@platform/contract/health'
import { elapsedMs, iso, now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { getConsistent } from '../db/table.ts'
import { currentChecks, type InstalledModules, isStale, readModules } from '../modules/module.ts'
import type { StoredCheck } from '../modules/record.ts'
import { PlatformState, readState } from './state.ts'
import { writeCheckView } from './write-check.ts'

/** Uses the last health checks of modules instead of running them. */
export async function ready(): Promise<{ ready: boolean; body: Readiness }> {
  const [storeResults, installedModules] = await Promise.all([storeChecks(), readModules().catch(() => undefined)])
  const checks = [...storeResults, ...(installedModules ? moduleChecks(installedModules) : [])].slice(0, checkLimit)
  const aggregate = aggregateOf(checks)
  const isReady = aggregate !== 'Unhealthy'
  return { ready: isReady, body: { status: isReady ? 'ok' : 'unavailable', aggregate, checks } }
}

export function aggregateOf(checks: readonly HealthCheck[]): Readiness['aggregate'] {
  if (checks.some((check) => isCritical(check) && check.status === 'Unhealthy')) return 'Unhealthy'
  return checks.some((check) => check.status !== 'Healthy' && affectsAggregate(check)) ? 'Degraded' : 'Healthy'
}

const checkLimit = 1000

const isCritical = ({ tags }: HealthCheck): boolean => tags.includes('critical')

/** Excludes informational checks, unless they are also critical or degradable. Includes checks without tags. */
const affectsAggregate = (check: HealthCheck): boolean =>
  isCritical(check) || check.tags.includes('degradable') || !check.tags.includes('informational')

async function storeChecks(): Promise<HealthCheck[]> {
  const startedAtMs = elapsedMs()
  const items = await getConsistent([keys.platform(), keys.writeCheck()]).catch(() => undefined)
  const database = databaseCheck(items && PlatformState.parse(items[0] ?? {}), Math.round(elapsedMs() - startedAtMs))
  return database.status === 'Healthy' ? [database, writeCheckView(items?.[1])] : [database]
}

function databaseCheck(state: PlatformState | undefined, durationMs: number): HealthCheck {
  const isReady = state !== undefined && state.starts > 0
  const description =
    state === undefined
      ? 'The store is not available'
      : isReady
        ? 'The store is available'
        : 'The platform has not been initialised yet'
  return {
    name: 'database',
    status: isReady ? 'Healthy' : 'Unhealthy',
    tags: ['critical'],
    source: 'platform',
    durationMs,
    checkedAt: iso(now()),
    description,
  }
}

export const moduleChecks = ({ modules, healthById }: InstalledModules): HealthCheck[] =>
  modules
    .filter(({ state }) => state !== 'Installing' && state !== 'Uninstalling')
    .flatMap((module) =>
      currentChecks(module, healthById.get(module.id)).map((check) => checkView(`module:${module.id}`, check)),
    )

const maxDescriptionLength = 500

function checkView(source: string, check: StoredCheck): HealthCheck {
  const { name, tags, durationMs, checkedAtMs } = check
  const isOutdated = isStale(checkedAtMs)
  const status = isOutdated && check.status === 'Healthy' ? 'Degraded' : check.status
  const description = isOutdated ? `Not checked since ${iso(checkedAtMs)}. ${check.description}` : check.description
  return {
    name,
    status,
    tags,
    source,
    durationMs,
    checkedAt: iso(checkedAtMs),
    description: description.slice(0, maxDescriptionLength),
  }
}

export async function isStarted(): Promise<boolean> {
  const state = await readState().catch(() => undefined)
  return state !== undefined && state.starts > 0
}
