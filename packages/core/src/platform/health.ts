import { type HealthCheck, type Readiness } from '@platform/contract/health'
import { iso, now } from '../clock.ts'
import { currentChecks, type InstalledModules, isStale, readModules } from '../modules/module.ts'
import { type StoredCheck } from '../modules/record.ts'
import { readState } from './state.ts'

/** Whether the platform can serve (D36). */

/** Readiness with its checks, those of modules as the last probe found them. Two calls at once. */
export async function ready(): Promise<{ ready: boolean; body: Readiness }> {
  const [database, installed] = await Promise.all([databaseCheck(), readModules().catch(() => undefined)])
  const checks = [database, ...(installed ? moduleChecks(installed) : [])].slice(0, checkLimit)
  const aggregate = aggregateOf(checks)
  const isReady = aggregate !== 'Unhealthy'
  return { ready: isReady, body: { status: isReady ? 'ok' : 'unavailable', aggregate, checks } }
}

/** What checks say together. */
export function aggregateOf(checks: readonly HealthCheck[]): Readiness['aggregate'] {
  if (checks.some((check) => isCritical(check) && check.status === 'Unhealthy')) return 'Unhealthy'
  return checks.some((check) => check.status !== 'Healthy' && counts(check)) ? 'Degraded' : 'Healthy'
}

/** As many as the contract promises at most. */
const checkLimit = 1000

const isCritical = ({ tags }: HealthCheck): boolean => tags.includes('critical')

/** What is for information alone never counts; what says nothing of itself does. */
const counts = (check: HealthCheck): boolean =>
  isCritical(check) || check.tags.includes('degradable') || !check.tags.includes('informational')

async function databaseCheck(): Promise<HealthCheck> {
  const startedAtMs = now()
  const state = await readState().catch(() => undefined)
  const isReady = state !== undefined && state.starts > 0
  const description =
    state === undefined ? 'The store does not answer' : isReady ? 'The store answers' : 'Initialization has not run yet'
  return {
    name: 'database',
    status: isReady ? 'Healthy' : 'Unhealthy',
    tags: ['critical'],
    source: 'platform',
    durationMs: now() - startedAtMs,
    checkedAt: iso(now()),
    description,
  }
}

/** What is on its way in or out is not part of the platform: its checks count no more, or not yet. */
export const moduleChecks = ({ modules, healths }: InstalledModules): HealthCheck[] =>
  modules
    .filter(({ state }) => state !== 'Installing' && state !== 'Uninstalling')
    .flatMap((row) => currentChecks(row, healths.get(row.id)).map((check) => checkView(`module:${row.id}`, check)))

const descriptionLength = 500

/** A good result that nobody has renewed is no good result. */
function checkView(source: string, check: StoredCheck): HealthCheck {
  const { name, tags, durationMs, checkedAtMs } = check
  const stale = isStale(checkedAtMs)
  const status = stale && check.status === 'Healthy' ? 'Degraded' : check.status
  const description = stale ? `Not checked since ${iso(checkedAtMs)}. ${check.description}` : check.description
  return {
    name,
    status,
    tags,
    source,
    durationMs,
    checkedAt: iso(checkedAtMs),
    description: description.slice(0, descriptionLength),
  }
}

/** Whether initialization, the first-run setup gate included, is done. One call. */
export async function started(): Promise<boolean> {
  const state = await readState().catch(() => undefined)
  return state !== undefined && state.starts > 0
}
