import { advanceBatch } from '@platform/core/jobs/batches/advance'
import { type Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import { type Item } from '@platform/core/db/table'
import { callerOf } from '../../test/support/world.ts'
import { posting } from '../../test/support/event.ts'
import { atLeast, type Figure, none } from '../part.ts'
import { allRows } from '../support/rows.ts'
import type { Answer, Call } from './caller.ts'
import { Balance, bearerOf, firstOf, type Race, saying, withStatus } from './round.ts'

const submittersAtOnce = 6

/** In fewer it is left to chance whether both sides win a round. */
const manyRounds = 100

type Kind = 'jobs' | 'batches'

/** A cluster is removed while jobs or batches are submitted to it: the one or the other is refused, in every round. */
export async function raceForRemoval(race: Race, kind: Kind, rounds: number): Promise<Figure[]> {
  let [removed, refused, both, strange] = [0, 0, 0, 0]
  const progress = saying(race.say, `rounds of removal against ${kind}`, rounds)
  const caller = await callerOf()
  const other = await Cluster.register(caller, { name: 'stays', type: 'Hypervisor' })
  const headStart = new Balance()
  for (let round = 0; round < rounds; round++) {
    const { id } = await Cluster.register(caller, { name: `${kind} ${round}`, type: 'Hypervisor' })
    const headers = await bearerOf(caller)
    const sent = { method: 'DELETE', target: `/api/v1/clusters/${id}`, headers }
    const removal = { function: 'clusters' as const, sent }
    const submissions = Array.from({ length: submittersAtOnce }, () => ({
      ...submission(kind, [id, other.id], headers),
      afterMs: headStart.next(race.random),
    }))
    const [answer, ...answers] = firstOf(await race.callers.together([removal, ...submissions]))
    const accepted = withStatus(answers, 202)
    const isRemoved = answer?.status === 204
    removed += isRemoved ? 1 : 0
    refused += answer?.status === 409 ? 1 : 0
    headStart.wasTooEarly(!isRemoved)
    both += isRemoved && accepted.length > 0 ? 1 : 0
    strange += answers.length - accepted.length - answers.filter(isRefused).length
    strange += answer?.status === 204 || answer?.status === 409 ? 0 : 1
    for (const { json } of kind === 'batches' ? accepted : []) await expand(caller, json.batchId)
    progress(round)
  }
  return [
    none(`removal against ${kind}: rounds with a 204 and an accepted job of the cluster`, both, `${rounds}`),
    ...(rounds < manyRounds
      ? []
      : [atLeast('… in which the removal won', removed, 1), atLeast('… in which a submission won', refused, 1)]),
    none('… answers that neither do it nor say why not', strange, `${rounds * (submittersAtOnce + 1)}`),
  ]
}

const expand = ({ organisationId }: Caller, batchId: string): Promise<void> => advanceBatch({ organisationId, batchId })

const jobFor = (clusterId: string) => ({ clusterId, type: 'InvokeScript', payload: { script: 'true' } })

function submission(
  kind: Kind,
  [clusterId = '', otherId = '']: readonly string[],
  headers: Record<string, string>,
): Call {
  return kind === 'jobs'
    ? { function: 'jobs', sent: posting('/api/v1/jobs', jobFor(clusterId), headers) }
    : { function: 'jobs', sent: posting('/api/v1/jobs/batch', { jobs: [jobFor(otherId), jobFor(clusterId)] }, headers) }
}

const isRefused = ({ status, json }: Answer): boolean =>
  (status === 404 && json.error === 'cluster_not_found') || (status === 403 && json.error === 'cluster_forbidden')

/** Looks at the whole table when all is over: jobs, payloads and counters. */
export async function orphans(): Promise<Figure[]> {
  const rows = await allRows()
  const clusters = new Map(rows.filter(isCluster).map((row) => [String(row['id']), row]))
  const jobs = rows.filter(({ sk }) => sk === 'JOB')
  const orphaned = jobs.filter(({ clusterId }) => !clusters.has(String(clusterId)))
  const active = Map.groupBy(jobs, ({ clusterId }) => String(clusterId))
  const drifted = [...clusters].filter(([id, row]) => Number(row['activeJobs']) !== (active.get(id)?.length ?? 0))
  return [
    none('jobs whose cluster is gone', orphaned.length, `${jobs.length}`),
    none('clusters whose counter is not the number of their active jobs', drifted.length, `${clusters.size}`),
  ]
}

const isCluster = ({ pk }: Item): boolean => String(pk).endsWith('#CLUSTER')
