// First: it sets what the platform may reach, which core reads when it is imported.
import {
  requestInstall,
  openRuntime,
  pick,
  runningModule,
  takeEventData,
  storedTraces,
} from '../../core/support/module-platform.ts'
import { pushModule } from '../../core/support/module-images.ts'
import { expect, onTestFinished, test } from 'vitest'
import * as Job from '@platform/core/jobs/job'
import * as Module from '@platform/core/modules/module'
import { supervise } from '@platform/worker/modules/supervise'
import { type ModuleRuntime, RuntimeError } from '@platform/worker/runtimes/port'
import { waitFor } from '../../support/wait-for.ts'
import { newCaller, bootstrapPlatform } from '../../support/fixtures.ts'
import { runModuleOperation } from '../../core/support/module-operations.ts'
import { newModuleId } from '../../core/support/modules.ts'
import { advanceClock } from '../../core/support/notifications.ts'

await bootstrapPlatform()

const gone = () => Promise.reject(new RuntimeError('unavailable', 'The module host does not answer.'))

/** A runtime that is ended, as it is where the platform stops: nobody answers any more. */
async function endingRuntime() {
  const runtime = await openRuntime(newModuleId())
  onTestFinished(() => runtime.close(0))
  let isOver = false
  const seen: ModuleRuntime = {
    ...runtime,
    deploy: (assignment) => (isOver ? gone() : runtime.deploy(assignment)),
    list: () => (isOver ? gone() : runtime.list()),
  }
  const end = async () => {
    isOver = true
    await runtime.close(1000)
  }
  return { end, running: () => runtime.list(), pick: async () => seen }
}

test('a platform that stops while its modules are loaded again has not made any of them fail', async () => {
  const { caller, id } = await runningModule({ configureMs: 1500 })
  const { end, running: listed, pick: pickThere } = await endingRuntime()
  const ticking = supervise(pickThere)
  await waitFor('it is being configured', async () => (await listed()).length > 0)
  await end()
  await ticking
  expect((await Module.read(id)).state).toBe('Running')
  expect(await takeEventData(caller)).toEqual([])
  await supervise(pick)
  expect((await Module.read(id)).health).toBe('Healthy')
})

test('a platform that stops in the middle of an installation goes on with it when it is back', async () => {
  const [caller, id] = [await newCaller(undefined, 'PlatformAdmin'), newModuleId()]
  const { reference } = await pushModule({ id, configureMs: 1500 })
  const accepted = await requestInstall(caller, reference)
  const { end, running: listed, pick: pickThere } = await endingRuntime()
  const working = runModuleOperation(accepted, pickThere)
  await waitFor('it is being configured', async () => (await listed()).length > 0)
  await end()
  await working
  expect((await Job.read(caller, accepted.jobId)).status).toBe('Running')
  advanceClock(60_000)
  await runModuleOperation(accepted, pick)
  expect((await Job.read(caller, accepted.jobId)).status).toBe('Completed')
  expect((await storedTraces(id)).row?.state).toBe('Running')
})
