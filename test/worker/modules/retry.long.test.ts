// First: it sets what the platform may reach, which core reads when it is imported.
import { requestInstall, pick, runtime, storedTraces, noTraces } from '../../core/support/module-platform.ts'
import { cases, crashAtStoreCall, expectEnd } from '../../core/support/module-cases.ts'
import { pushModule, withoutRegistry } from '../../core/support/module-images.ts'
import { beforeEach, expect, test } from 'vitest'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import * as Job from '@platform/core/jobs/job'
import { operationLeaseMs } from '@platform/core/operations/operation'
import { supervise } from '@platform/worker/modules/supervise'
import { RuntimeError } from '@platform/worker/runtimes/port'
import { beforeCommand } from '../../support/store-calls.ts'
import { newCaller, bootstrapPlatform } from '../../support/fixtures.ts'
import { deadLetterModuleOperation, runModuleOperation } from '../../core/support/module-operations.ts'
import { receiveMessages } from '../../core/support/messages.ts'
import { newModuleId } from '../../core/support/modules.ts'
import { advanceClock } from '../../core/support/notifications.ts'

await bootstrapPlatform()
const admin = () => newCaller(undefined, 'PlatformAdmin')

const isAway = () => Promise.reject(new RuntimeError('unavailable', 'The host is away.'))
const broken = async () => ({ ...runtime, deploy: isAway })
const deaf = async () => ({ ...runtime, remove: isAway })

beforeEach(async () => void (await receiveMessages(config.PLAT_QUEUE_UPDATES)))

test('a registry that cannot be reached is tried again after a pause, and the module is installed in the end', async () => {
  const [caller, id] = [await admin(), newModuleId()]
  const { reference } = await pushModule({ id })
  const accepted = await requestInstall(caller, reference)
  await receiveMessages(config.PLAT_QUEUE_UPDATES)
  await withoutRegistry(() => runModuleOperation(accepted, pick))
  const job = await Job.read(caller, accepted.jobId)
  expect(job).toMatchObject({ status: 'Running', steps: [{ name: 'verify', status: 'Running' }, {}, {}, {}, {}, {}] })
  expect(job.steps?.[0]?.message).toContain('Retrying after')
  await runModuleOperation(accepted, pick)
  expect((await Job.read(caller, accepted.jobId)).status).toBe('Running')
  advanceClock(5001)
  await runModuleOperation(accepted, pick)
  expect((await Job.read(caller, accepted.jobId)).status).toBe('Completed')
})

test('what fails in passing fails for good after five tries, and nothing is left', async () => {
  const { caller, id, accepted } = await cases.installation()
  for (let attempt = 1; attempt <= 5; attempt++) {
    expect((await Job.read(caller, accepted.jobId)).status).toBe(attempt === 1 ? 'Queued' : 'Running')
    await runModuleOperation(accepted, broken)
    advanceClock(60_000)
  }
  const result = { output: 'The host is away. (PLAT-MOD-5007)', exitCode: 1 }
  expect(await Job.read(caller, accepted.jobId)).toMatchObject({ status: 'Failed', result })
  expect(await storedTraces(id)).toEqual(noTraces)
})

test('a module that cannot be stopped is uninstalled all the same, and cleared away when it can be reached', async () => {
  const { caller, id, accepted } = await cases.uninstallation()
  for (let attempt = 1; attempt <= 5; attempt++) {
    await runModuleOperation(accepted, deaf)
    advanceClock(120_000)
  }
  expect(await Job.read(caller, accepted.jobId)).toMatchObject({ status: 'Completed' })
  expect((await storedTraces(id)).deployments).toHaveLength(1)
  await supervise(pick)
  expect(await storedTraces(id)).toEqual(noTraces)
})

test('a worker that is ended again and again is not begun for ever', async () => {
  const { caller, id, accepted } = await cases.installation()
  for (let attempt = 1; attempt <= 5; attempt++) {
    await crashAtStoreCall(accepted, 6, 'before')
    advanceClock(operationLeaseMs + 1)
  }
  expect((await Job.read(caller, accepted.jobId)).status).toBe('Running')
  await runModuleOperation(accepted, pick)
  const result = { output: 'It was started 5 times without completing.' }
  expect(await Job.read(caller, accepted.jobId)).toMatchObject({ status: 'Failed', result })
  expect(await storedTraces(id)).toEqual(noTraces)
})

test.each(['installation', 'upgrade'] as const)('an %s whose message nobody could handle is undone', async (name) => {
  const each = await cases[name]()
  await deadLetterModuleOperation(each.accepted, pick)
  await deadLetterModuleOperation(each.accepted, pick)
  await expectEnd({ ...each, status: 'Failed', version: name === 'upgrade' ? '1.0.0' : undefined })
})

test('an uninstallation whose message nobody could handle is done all the same', async () => {
  const each = await cases.uninstallation()
  await deadLetterModuleOperation(each.accepted, pick)
  await expectEnd(each)
})

test('a worker that has lost its operation removes nothing of what the next one has installed', async () => {
  const { caller, id, accepted } = await cases.installation()
  const [begun, deployed] = [Promise.withResolvers<void>(), Promise.withResolvers<never>()]
  const slow = async () => ({
    ...runtime,
    deploy: () => {
      begun.resolve()
      return deployed.promise
    },
  })
  const working = runModuleOperation(accepted, slow)
  await begun.promise
  advanceClock(operationLeaseMs + 1)
  await runModuleOperation(accepted, pick)
  const installed = await storedTraces(id)
  deployed.reject(new RuntimeError('refused', 'It came too late.'))
  await working
  expect(await storedTraces(id)).toEqual(installed)
  expect(installed.deployments).toHaveLength(1)
  expect(await Job.read(caller, accepted.jobId)).toMatchObject({ status: 'Completed' })
})

test.each(['installation', 'upgrade'] as const)(
  'an %s that somebody else has ended a moment before is left as that one has made it',
  async (name) => {
    const each = await cases[name]()
    // The claim, a step each, and the end.
    const happened = beforeCommand(
      /TransactWrite/,
      async () => {
        advanceClock(operationLeaseMs + 1)
        await runModuleOperation(each.accepted, pick)
      },
      8,
    )
    await runModuleOperation(each.accepted, pick)
    expect(happened()).toBe(true)
    const { row, deployments } = await storedTraces(each.id)
    expect(deployments).toEqual([row?.deployment?.id])
    await expectEnd(each)
  },
)

test('an installation whose module was taken away under it fails, and clears away what it has deployed', async () => {
  const { caller, id, accepted } = await cases.installation()
  await transact([remove(keys.module(id))])
  await runModuleOperation(accepted, pick)
  const result = { output: 'The module has been changed by something else.' }
  expect(await Job.read(caller, accepted.jobId)).toMatchObject({ status: 'Failed', result })
  expect((await storedTraces(id)).deployments).toEqual([])
})
