import { type ModuleErrorCode } from '@platform/contract/module'
import { system } from '@platform/core/caller'
import { commit } from '@platform/core/outbox/commit'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { patch } from '@platform/core/db/table'
import { log } from '@platform/core/log'
import { reserveRoutesWrite, readRoutes } from '@platform/core/modules/routes'
import { serialise } from '@platform/core/modules/record'
import { shutDown } from './lifecycle/shut-down.ts'
import { type ModuleRuntime } from '../runtimes/port.ts'
import { retryOnConflictFor } from './retry-on-conflict.ts'
import { type ServingModule } from './records.ts'

const graceMs = 5000

/** A module that its runtime does not start any more (D43). */
export const failCrashed = (runtime: ModuleRuntime, row: ServingModule, lastCrash?: string): Promise<void> =>
  fail(runtime, row, {
    code: 'PLAT-MOD-5008',
    message: `It crashed five times in ten minutes. ${lastCrash ?? ''}`.trim(),
  })

/**
 * Makes a module Failed: it keeps its path, and serves nothing until somebody installs it again. One that an operation is
 * changing stays as it is; the operation decides. Two calls and a message.
 */
export async function fail(
  runtime: ModuleRuntime,
  row: ServingModule,
  error: { code: ModuleErrorCode; message: string },
): Promise<void> {
  const { id: moduleId, jobId, deployment } = row
  if (jobId !== undefined) return
  log('error', 'A module has failed', { moduleId, code: error.code, reason: error.message })
  if (await store(row, error)) await shutDown(runtime, deployment, { graceMs })
}

/** Answers false where somebody else has changed the module. */
async function store(row: ServingModule, { code, message: text }: { code: ModuleErrorCode; message: string }) {
  const { id: moduleId, organisationId, updatedAtMs, release } = row
  const { version, manifest } = release
  const message = text.slice(0, 1000).toWellFormed()
  const set = {
    state: 'Failed',
    error: serialise({ code, message, atMs: now() }),
    subscriptions: [],
    updatedAtMs: now(),
  }
  const asRead = { updatedAtMs: { is: updatedAtMs }, jobId: { absent: true } } as const
  const refusal = await retryOnConflictFor(async () =>
    commit(system(organisationId), {
      steps: [
        patch(keys.module(moduleId), { set, remove: ['deployment'] }, asRead),
        reserveRoutesWrite(await readRoutes(), moduleId, { apiBasePath: manifest.spec.apiBasePath }),
      ],
      events: [{ name: 'module.failed', subject: moduleId, data: { moduleId, version, code, message } }],
    }),
  )
  return refusal === undefined
}
