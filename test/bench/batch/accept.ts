import * as keys from '@platform/core/db/keys'
import { remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { handler as jobs } from '../../../functions/jobs.ts'
import { send, type TestRequest } from '../../support/request.ts'
import { metered, type Usage } from '../support/meter.ts'
import { atMost, type Effort, type Section } from '../support/section.ts'
import { ratios, spread } from '../support/statistics.ts'
import { accepted, type Tenant } from '../support/tenant.ts'
import type { World } from '../support/world.ts'
import { race, type Times } from './race.ts'
import { inTurn, jobsInBatch, noise, sameScript, submission } from './submissions.ts'

/** A kind of batch, and the write units that it may take for each of its jobs. */
interface Kind {
  name: string
  request: () => TestRequest
  unitsOfJob: number
}

/** What accepting 500 jobs at once costs, and how long it takes over a network. */
export async function measureAccept(
  world: World,
  { accessToken, organisationId }: Tenant,
  clusterIds: readonly string[],
  { isQuick }: Effort,
): Promise<Section> {
  const kinds = kindsOf(accessToken, clusterIds)
  const reopen = () => transact([remove(keys.removalGuard(organisationId))])
  const usages: Usage[] = []
  for (const { request } of kinds) {
    accepted(await send(jobs, request()))
    await reopen()
    const { result, usage } = await metered(() => send(jobs, request()))
    accepted(result)
    usages.push(usage)
  }
  const [rounds, warmUps] = isQuick ? [3, 2] : [10, 6]
  const times = await race(world, kinds, { rounds, warmUps, reopen })
  return section(kinds, usages, times)
}

const kindsOf = (accessToken: string, clusterIds: readonly string[]): Kind[] => {
  const one = inTurn(clusterIds.slice(0, 1))
  const all = inTurn(clusterIds)
  return [
    { name: 'one script, one cluster', request: () => submission(accessToken, one, sameScript), unitsOfJob: 0.15 },
    { name: 'one script, 500 clusters', request: () => submission(accessToken, all, sameScript), unitsOfJob: 0.15 },
    { name: '500 scripts of noise', request: () => submission(accessToken, all, noise(1024)), unitsOfJob: 1.5 },
  ]
}

const callsOf = ({ calls }: Usage): number => Object.values(calls).reduce((sum, count) => sum + count, 0)

function section(kinds: readonly Kind[], usages: readonly Usage[], times: readonly Times[]): Section {
  const results = kinds.flatMap((kind, index) => {
    const [usage, taken] = [usages[index], times[index]]
    if (usage === undefined || taken === undefined) return []
    const { wallMs, cpuMs } = taken
    const [wall, cpu] = [ratios(wallMs.platform, wallMs.serial), ratios(cpuMs.platform, cpuMs.floor)]
    return [{ kind, usage, wallMs, cpuMs, wall, cpu, units: usage.writeUnits / jobsInBatch }]
  })
  return {
    title: `Accepting a batch of ${jobsInBatch} jobs`,
    columns: [
      'batch',
      'calls',
      'rounds',
      'read units',
      'write units',
      'a job',
      'ms',
      'floor ms',
      'serial ms',
      '× serial',
      'min',
      'max',
      'CPU ms',
      'floor CPU ms',
      'CPU ratio',
      'min',
      'max',
    ],
    rows: results.map(({ kind, usage, wallMs, cpuMs, wall, cpu, units }) => [
      kind.name,
      callsOf(usage),
      usage.rounds,
      usage.readUnits,
      usage.writeUnits,
      units,
      spread(wallMs.platform).median,
      spread(wallMs.floor).median,
      spread(wallMs.serial).median,
      wall.median,
      wall.min,
      wall.max,
      spread(cpuMs.platform).median,
      spread(cpuMs.floor).median,
      cpu.median,
      cpu.min,
      cpu.max,
    ]),
    goals: results.flatMap(({ kind: { name, unitsOfJob }, usage, wall, units }) => [
      atMost(`batch, ${name}: calls`, callsOf(usage), 7),
      atMost(`batch, ${name}: rounds`, usage.rounds, 3),
      atMost(`batch, ${name}: write units of a job`, units, unitsOfJob),
      atMost(`batch, ${name}: time, × serial`, wall.median, 0.15),
    ]),
  }
}
