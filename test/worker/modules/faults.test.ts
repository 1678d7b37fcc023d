// First: it sets what the platform may reach, which core reads when it is imported.
import { pick } from '../../core/support/module-platform.ts'
import { cases, crashAtStoreCall, expectEnd } from '../../core/support/module-cases.ts'
import { isLong, sampled, stride } from '../../support/long.ts'
import { expect, test, vi } from 'vitest'
import * as Job from '@platform/core/jobs/job'
import { operationLeaseMs } from '@platform/core/operations/operation'
import { bootstrapPlatform } from '../../support/fixtures.ts'
import { runModuleOperation } from '../../core/support/module-operations.ts'
import { advanceClock } from '../../core/support/notifications.ts'

await bootstrapPlatform()

const names = Object.keys(cases) as (keyof typeof cases)[]

const cuts = names.flatMap((name) => (['before', 'after'] as const).map((when) => [name, when] as const))

test.each(sampled(cuts))(
  'an %s ends once and whole, wherever its worker is cut off: %s the store has answered',
  async (name, when) => {
    let wasCut = true
    for (let n = 1; wasCut; n += stride) {
      const each = await cases[name]()
      wasCut = await crashAtStoreCall(each.accepted, n, when)
      // The message comes again, at once and when the claim has run out.
      await runModuleOperation(each.accepted, pick)
      advanceClock(operationLeaseMs + 1)
      await runModuleOperation(each.accepted, pick)
      await runModuleOperation(each.accepted, pick)
      await expectEnd(each)
    }
  },
  240_000,
)

test.each(sampled(names))(
  'an %s is done once where many workers hear of it at the same time, and again later',
  async (name) => {
    const each = await cases[name]()
    await Promise.all([1, 2, 3, 4].map(() => runModuleOperation(each.accepted, pick)))
    await runModuleOperation(each.accepted, pick)
    await expectEnd(each)
  },
)

test.each(sampled(names))('an %s whose worker is slower than its claim is done once by the next one', async (name) => {
  const each = await cases[name]()
  const slow = runModuleOperation(each.accepted, pick)
  // The claim runs out while the first one is at it: both go on.
  advanceClock(operationLeaseMs + 1)
  await Promise.all([slow, runModuleOperation(each.accepted, pick)])
  advanceClock(operationLeaseMs + 1)
  await runModuleOperation(each.accepted, pick)
  await expectEnd(each)
})

const failpoints = {
  installation: ['operation.begun', 'module.verified', 'module.deployed', 'module.loaded', 'module.published'],
  'installation that fails': ['module.compensated'],
  upgrade: ['module.deployed', 'module.loaded', 'module.published'],
  'upgrade that fails': ['module.compensated'],
  uninstallation: ['module.stopped', 'module.forgotten'],
} as const

const breaks = names.flatMap((name) => failpoints[name].map((failpoint) => [name, failpoint] as const))
/** Whether no other kind of operation before it has broken off there. */
const isFirstThere = ([, failpoint]: (typeof breaks)[number], index: number): boolean =>
  breaks.findIndex((each) => each[1] === failpoint) === index

test.each(breaks.filter((each, index) => isLong || isFirstThere(each, index)))(
  'an %s that breaks off at %s is ended by the next try',
  async (name, failpoint) => {
    const each = await cases[name]()
    vi.stubEnv('PLAT_FAILPOINT', `${failpoint}=throw`)
    vi.resetModules()
    // A worker of its own, as armed as a process would be.
    const armed = await import('../../core/support/module-operations.ts')
    vi.unstubAllEnvs()
    await armed.runModuleOperation(each.accepted, pick).catch(() => undefined)
    const isDone = failpoint === 'module.published'
    expect((await Job.read(each.caller, each.accepted.jobId)).status).toBe(isDone ? 'Completed' : 'Running')
    advanceClock(operationLeaseMs + 1)
    await runModuleOperation(each.accepted, pick)
    await expectEnd(each)
  },
)
