// First: it sets what the platform may reach, which core reads when it is imported.
import {
  requestInstall,
  requestUninstall,
  install,
  noTraces,
  output,
  pick,
  readActorLog,
  takeEvents,
  storedTraces,
} from '../../core/support/module-platform.ts'
import { client, pushModule, registry } from '../../core/support/module-images.ts'
import { expect, test } from 'vitest'
import { type Caller } from '@platform/core/caller'
import * as Job from '@platform/core/jobs/job'
import * as Module from '@platform/core/modules/module'
import { countStoreCalls } from '../../support/store-calls.ts'
import { newCaller, bootstrapPlatform } from '../../support/fixtures.ts'
import { runModuleOperation } from '../../core/support/module-operations.ts'
import { newModuleId } from '../../core/support/modules.ts'
import { rounds, sampled } from '../../support/long.ts'

await bootstrapPlatform()
const admin = () => newCaller(undefined, 'PlatformAdmin')

const stepsOf = async (caller: Caller, jobId: string) =>
  (await Job.read(caller, jobId)).steps?.map(({ name, status }) => `${name} ${status}`)

const installedSteps = ['verify', 'deploy', 'configure', 'start', 'probe', 'publish'].map((name) => `${name} Completed`)

test('an installed module runs, serves below its path, is healthy and told of; its job says each step', async () => {
  const [caller, id] = [await admin(), newModuleId()]
  const job = await install(caller, { id, subscribes: ['platform.cluster.deleted'] })
  expect(job).toMatchObject({ status: 'Completed', result: { output: 'Version 1.0.0 runs.', exitCode: 0 } })
  expect(await stepsOf(caller, job.id)).toEqual(installedSteps)
  const module = { state: 'Running', health: 'Healthy', verified: true, verifiedBy: 'tests', warnings: [] }
  expect(await Module.read(id)).toMatchObject({ ...module, checks: [{ name: 'mood', status: 'Healthy' }] })
  expect('jobId' in (await Module.read(id))).toBe(false)
  const { row, claim, deployments } = await storedTraces(id)
  expect(deployments).toEqual([row?.deployment?.id])
  expect(JSON.parse(String(claim))).toEqual({
    apiBasePath: `/api/${id}`,
    deployment: row?.deployment,
    subscriptions: ['platform.cluster.deleted'],
  })
  expect((await readActorLog(id)).hooks).toEqual(['configure', 'start'])
  const told = await takeEvents(caller)
  expect(told.map(({ name }) => name).toSorted()).toEqual(
    [
      'job.completed',
      'job.queued',
      'job.started',
      `module.${id}.configured`,
      'module.installed',
      'module.installing',
    ].toSorted(),
  )
  expect(told.find(({ name }) => name === 'module.installed')?.data).toEqual({
    moduleId: id,
    version: '1.0.0',
    jobId: job.id,
    verified: true,
  })
})

test.each(
  sampled([
    ['throws in configure', { throwsIn: 'configure' }, 'configure', 'PLAT-MOD-5004', 'It throws in configure.'],
    ['throws in start', { throwsIn: 'start' }, 'start', 'PLAT-MOD-5005', 'It throws in start.'],
    ['is another one in its code', { codeId: 'other' }, 'configure', 'PLAT-MOD-5001', 'The code says other'],
    ['ends at once', { entrypoint: ['node', '/nowhere.mjs'] }, 'deploy', 'PLAT-MOD-5007', ''],
    ['cannot run here', { entrypoint: ['python3', '/x.py'] }, 'deploy', 'PLAT-MOD-5007', 'cannot run here'],
  ] as const),
)('a module that %s leaves nothing behind, and its job says why', async (_, plan, step, code, words) => {
  const [caller, id, neighbour] = [await admin(), newModuleId(), newModuleId()]
  await install(caller, { id: neighbour })
  await takeEvents(caller)
  const job = await install(caller, { id, ...plan })
  expect(job).toMatchObject({ status: 'Failed', statusReason: 'module_operation_failed', result: { exitCode: 1 } })
  expect(job.result?.output).toContain(words)
  expect(job.steps?.find(({ status }) => status === 'Failed')?.name).toBe(step)
  expect(await storedTraces(id)).toEqual(noTraces)
  const failed = (await takeEvents(caller)).filter(({ name }) => name === 'module.failed')
  const [{ data: { message } } = { data: { message: '' } }] = failed
  expect(failed.map(({ data }) => data)).toEqual([{ moduleId: id, version: '1.0.0', jobId: job.id, code, message }])
  expect(job.result?.output).toBe(`${message} (${code})`)
  expect((await readActorLog(neighbour)).hooks).toEqual(['configure', 'start'])
})

test('modules that are installed at the same time all run, and each has its path', async () => {
  const caller = await admin()
  const ids = Array.from({ length: rounds(3, 5) }, newModuleId)
  const accepted = []
  for (const id of ids) accepted.push(await requestInstall(caller, (await pushModule({ id })).reference))
  await Promise.all(accepted.map((each) => runModuleOperation(each, pick)))
  for (const [index, id] of ids.entries()) {
    expect((await Job.read(caller, accepted[index]?.jobId ?? '')).status).toBe('Completed')
    expect((await readActorLog(id)).hooks).toEqual(['configure', 'start'])
    expect(JSON.parse(String((await storedTraces(id)).claim)).deployment.moduleId).toBe(id)
  }
})

test('a module that subscribes to all too much runs, and is told that not all of it counts', async () => {
  const [caller, id] = [await admin(), newModuleId()]
  const subscribes = Array.from({ length: 60 }, (_, index) => `module.other.event${index}`)
  expect(await install(caller, { id, subscribes })).toMatchObject({ status: 'Completed' })
  expect((await Module.read(id)).warnings).toEqual(['Only 50 of its subscriptions count.'])
  expect(JSON.parse(String((await storedTraces(id)).claim)).subscriptions).toHaveLength(50)
})

test('an installation costs the store so many calls, and an uninstallation', async () => {
  const [caller, id] = [await admin(), newModuleId()]
  const accepted = await requestInstall(caller, (await pushModule({ id })).reference)
  // The claim and its reading, six steps, the end with what it is decided by, and what the module has published.
  expect(await countStoreCalls(() => runModuleOperation(accepted, pick))).toBe(11)
  const removal = await requestUninstall(caller, id)
  // The claim and its reading, two steps, the module, its events and their turn, and the end.
  expect(await countStoreCalls(() => runModuleOperation(removal, pick))).toBe(9)
})

test('an uninstalled module has stopped, and leaves nothing behind', async () => {
  const [caller, id, neighbour] = [await admin(), newModuleId(), newModuleId()]
  await install(caller, { id, subscribes: ['platform.user.created'] })
  await install(caller, { id: neighbour })
  await takeEvents(caller)
  const accepted = await requestUninstall(caller, id)
  await runModuleOperation(accepted, pick)
  expect(await stepsOf(caller, accepted.jobId)).toEqual(['stop Completed', 'remove Completed'])
  expect(await Job.read(caller, accepted.jobId)).toMatchObject({
    status: 'Completed',
    result: { output: 'It is gone.' },
  })
  expect(await storedTraces(id)).toEqual(noTraces)
  expect(output.filter((line) => line.includes('hook stop'))).toHaveLength(1)
  const told = (await takeEvents(caller)).filter(({ name }) => name.startsWith('module.'))
  expect(told).toMatchObject([{ name: 'module.uninstalled', data: { moduleId: id, version: '1.0.0' } }])
  expect((await readActorLog(neighbour)).hooks).toEqual(['configure', 'start'])
})

test('who vouches for an image is asked again when it is used: one that lost its signature since is not run', async () => {
  const [caller, id] = [await admin(), newModuleId()]
  const { reference, digest } = await pushModule({ id })
  const accepted = await requestInstall(caller, reference)
  const signatures = await client.referrers(`modules/${id}`, digest)
  expect(signatures).toHaveLength(1)
  await client.remove(`modules/${id}`, signatures[0]?.digest ?? '')
  await runModuleOperation(accepted, pick)
  const job = await Job.read(caller, accepted.jobId)
  expect(job).toMatchObject({ status: 'Failed', result: { output: expect.stringContaining('No signature') } })
  expect(await storedTraces(id)).toEqual(noTraces)
})

test('an image that has gone since it was accepted fails the installation at once', async () => {
  const [caller, id] = [await admin(), newModuleId()]
  const { reference, digest } = await pushModule({ id })
  const accepted = await requestInstall(caller, reference)
  await client.remove(`modules/${id}`, digest)
  await runModuleOperation(accepted, pick)
  const job = await Job.read(caller, accepted.jobId)
  const gone = `${registry.host}/modules/${id}@${digest} is not there any more.`
  expect(job).toMatchObject({ status: 'Failed', result: { output: gone } })
  expect(await storedTraces(id)).toEqual(noTraces)
})
