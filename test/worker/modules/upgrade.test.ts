// First: it sets what the platform may reach, which core reads when it is imported.
import {
  requestInstall,
  install,
  output,
  pick,
  runtime,
  readActorLog,
  takeEvents,
  storedTraces,
} from '../../core/support/module-platform.ts'
import { pushModule } from '../../core/support/module-images.ts'
import { expect, test } from 'vitest'
import * as Job from '@platform/core/jobs/job'
import * as Module from '@platform/core/modules/module'
import { supervise } from '@platform/worker/modules/supervise'
import { newCaller, bootstrapPlatform } from '../../support/fixtures.ts'
import { runModuleOperation } from '../../core/support/module-operations.ts'
import { newModuleId } from '../../core/support/modules.ts'

await bootstrapPlatform()
const admin = () => newCaller(undefined, 'PlatformAdmin')

test('an upgrade serves the old release until the new one is healthy; then the old one stops and goes', async () => {
  const [caller, id] = [await admin(), newModuleId()]
  await install(caller, { id })
  const { row: old } = await storedTraces(id)
  await takeEvents(caller)
  const { reference } = await pushModule({ id, version: '1.1.0', configureMs: 300 })
  const accepted = await requestInstall(caller, reference)
  const working = runModuleOperation(accepted, pick)
  expect(await Module.read(id)).toMatchObject({ state: 'Upgrading', version: '1.0.0', jobId: accepted.jobId })
  expect((await readActorLog(id)).hooks).toEqual(['configure', 'start'])
  await working
  expect(await Job.read(caller, accepted.jobId)).toMatchObject({ status: 'Completed' })
  const { row, claim, deployments } = await storedTraces(id)
  expect(row).toMatchObject({ state: 'Running', release: { version: '1.1.0' } })
  expect([deployments, JSON.parse(String(claim)).deployment]).toEqual([[row?.deployment?.id], row?.deployment])
  expect(row?.deployment?.id).not.toBe(old?.deployment?.id)
  expect(row?.installedAtMs).toBe(old?.installedAtMs)
  expect(output.filter((line) => line.includes('hook stop'))).toHaveLength(1)
  const told = (await takeEvents(caller)).find(({ name }) => name === 'module.installed')
  expect(told?.data).toMatchObject({ version: '1.1.0', previousVersion: '1.0.0' })
})

test('an upgrade that fails leaves the old release as it was, and nothing of the new one', async () => {
  const [caller, id] = [await admin(), newModuleId()]
  await install(caller, { id })
  const before = await storedTraces(id)
  const job = await install(caller, { id, version: '1.1.0', throwsIn: 'start' })
  expect(job.status).toBe('Failed')
  const after = await storedTraces(id)
  expect({ ...after, row: { ...after.row, updatedAtMs: 0 } }).toEqual({
    ...before,
    row: { ...before.row, updatedAtMs: 0 },
  })
  expect((await readActorLog(id)).hooks).toEqual(['configure', 'start'])
})

test('an old release that does not stop as it should fails no upgrade', async () => {
  const [caller, id] = [await admin(), newModuleId()]
  await install(caller, { id, throwsIn: 'stop' })
  expect(await install(caller, { id, version: '1.1.0' })).toMatchObject({ status: 'Completed' })
  const { row, deployments } = await storedTraces(id)
  expect(deployments).toEqual([row?.deployment?.id])
})

test('an upgrade to a path that another module has taken meanwhile fails, and the path stays whose it is', async () => {
  const [caller, id, other] = [await admin(), newModuleId(), newModuleId()]
  await install(caller, { id })
  const { reference } = await pushModule({ id, version: '1.1.0', spec: { apiBasePath: `/api/${other}` } })
  const accepted = await requestInstall(caller, reference)
  expect(await install(caller, { id: other })).toMatchObject({ status: 'Completed' })
  await runModuleOperation(accepted, pick)
  const job = await Job.read(caller, accepted.jobId)
  expect(job).toMatchObject({
    status: 'Failed',
    result: { output: `Module ${other} has the API path /api/${other} by now.` },
  })
  expect(await Module.read(id)).toMatchObject({ state: 'Running', version: '1.0.0', apiBasePath: `/api/${id}` })
  expect((await readActorLog(other)).hooks).toEqual(['configure', 'start'])
})

test('a module that has failed is installed again over itself; where that fails too it is as failed as before', async () => {
  const [caller, id] = [await admin(), newModuleId()]
  const { reference } = await pushModule({ id })
  await runModuleOperation(await requestInstall(caller, reference), pick)
  await crashOften(id)
  const failed = await storedTraces(id)
  expect(failed.row).toMatchObject({ state: 'Failed', error: { code: 'PLAT-MOD-5008' } })
  const worse = await install(caller, { id, version: '1.0.1', throwsIn: 'configure' })
  expect(worse.status).toBe('Failed')
  const after = await storedTraces(id)
  expect({ ...after, row: { ...after.row, updatedAtMs: 0 } }).toEqual({
    ...failed,
    row: { ...failed.row, updatedAtMs: 0 },
  })
  await runModuleOperation(await requestInstall(caller, reference), pick)
  const module = await Module.read(id)
  expect(module).toMatchObject({ state: 'Running', health: 'Healthy' })
  expect('lastError' in module).toBe(false)
})

/** Has a module crash until its runtime gives it up, and the platform notice. */
async function crashOften(id: string): Promise<void> {
  const { row } = await storedTraces(id)
  if (row?.deployment === undefined) throw new Error('It does not run.')
  const limits = { timeoutMs: 1000, maxBytes: 1000 }
  const stateOf = async () =>
    (await runtime.list()).find(({ deployment }) => deployment.id === row.deployment?.id)?.state
  while ((await stateOf()) !== 'failed') {
    await runtime.request(row.deployment, { method: 'POST', path: `/api/${id}/exit` }, limits).catch(() => undefined)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  await supervise(pick)
}
