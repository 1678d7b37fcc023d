import { type Readiness } from '@platform/contract/health'
import { readState } from './bootstrap.ts'
import { iso, now } from './clock.ts'

/** Whether the platform can serve (D36). */

/** Readiness with its checks. One call. */
export async function ready(): Promise<{ ready: boolean; body: Readiness }> {
  const startedAtMs = now()
  const state = await readState().catch(() => undefined)
  const isReady = state !== undefined && state.starts > 0
  const description =
    state === undefined ? 'The store does not answer' : isReady ? 'The store answers' : 'Initialization has not run yet'
  const check = {
    name: 'database',
    status: isReady ? ('Healthy' as const) : ('Unhealthy' as const),
    tags: ['critical' as const],
    source: 'platform',
    durationMs: now() - startedAtMs,
    checkedAt: iso(now()),
    description,
  }
  const body = {
    status: isReady ? ('ok' as const) : ('unavailable' as const),
    aggregate: check.status,
    checks: [check],
  }
  return { ready: isReady, body }
}

/** Whether initialization, the first-run setup gate included, is done. One call. */
export async function started(): Promise<boolean> {
  const state = await readState().catch(() => undefined)
  return state !== undefined && state.starts > 0
}
