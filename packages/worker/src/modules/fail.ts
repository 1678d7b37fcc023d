import type { ModuleErrorCode } from '@platform/contract/module'
import { system } from '@platform/core/caller'
import { commit } from '@platform/core/outbox/commit'
import { now } from '@platform/core/clock'
import { patch } from '@platform/core/db/table'
import { log } from '@platform/core/log'
import { reserveRoutesWrite, readRoutes } from '@platform/core/modules/routes'
import { serialise } from '@platform/core/modules/record'
import * as keys from '@platform/core/db/keys'
import { shutDown } from './lifecycle/shut-down.ts'
import type { ModuleRuntime } from '../runtimes/port.ts'
import { retryOnConflictFor } from './finish.ts'
import { reservationOf, type ServingModule } from './records.ts'

const graceMs = 5000

/** Fails a module that its runtime no longer restarts. */
export const failCrashed = (runtime: ModuleRuntime, record: ServingModule, lastCrash?: string): Promise<void> =>
  fail(runtime, record, {
    code: 'PLAT-MOD-5008',
    message: `The module crashed five times in ten minutes. ${lastCrash ?? ''}`.trim(),
  })

/**
 * Marks a module as Failed: it keeps its API path but serves no requests until it is installed again. Does not change a
 * module with an operation in progress, because the operation sets its state.
 */
export async function fail(
  runtime: ModuleRuntime,
  record: ServingModule,
  error: { code: ModuleErrorCode; message: string },
): Promise<void> {
  const { id: moduleId, jobId, deployment } = record
  if (jobId !== undefined) return
  log('error', 'Module failed', { moduleId, code: error.code, reason: error.message })
  if (await storeFailure(record, error)) await shutDown(runtime, deployment, { graceMs })
}

/** Returns false if the module has changed since it was read. */
async function storeFailure(
  record: ServingModule,
  { code, message: text }: { code: ModuleErrorCode; message: string },
) {
  const { id: moduleId, organisationId, updatedAtMs, release } = record
  const { version } = release
  const message = text.slice(0, 1000).toWellFormed()
  const set = {
    state: 'Failed',
    error: serialise({ code, message, atMs: now() }),
    subscriptions: [],
    updatedAtMs: now(),
  }
  const unmodifiedCondition = { updatedAtMs: { is: updatedAtMs }, jobId: { absent: true } } as const
  const conflict = await retryOnConflictFor(async () =>
    commit(system(organisationId), {
      writes: [
        patch(keys.module(moduleId), { set, remove: ['deployment'] }, unmodifiedCondition),
        reserveRoutesWrite(await readRoutes(), moduleId, reservationOf(release)),
      ],
      events: [{ name: 'module.failed', subject: moduleId, data: { moduleId, version, code, message } }],
    }),
  )
  return conflict === undefined
}

/** Logs errors, so that work for one module does not stop the work for others. */
export async function logErrors(name: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (cause) {
    log('error', 'Module health check failed', { name, cause })
  }
}
