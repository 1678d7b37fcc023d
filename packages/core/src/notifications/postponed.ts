import { iso, now } from '../clock.ts'
import { type ClusterRecord, currentStatus, parseCluster } from '../clusters/record.ts'
import * as keys from '../db/keys.ts'
import { getMany, type Item } from '../db/table.ts'
import { derivedId } from '../id.ts'
import { forEachLimit } from '../lib/async.ts'
import { concludeRefusal, parseCooldown } from './cooldown.ts'
import { type NewNotification, notify } from './projection.ts'
import { clusterNotification, clustersNotification, statusOfType } from './templates.ts'

/** Up to this number of changes of an organisation in a sweep, each cluster has its own notification. */
export const maxSingleNotifications = 20
const namesPerNotification = 10
const concurrency = 25

/** At the end of a cooldown, reports the change that it refused if the cluster still has that status. */
export async function reportPostponed(organisationId: string, cooldowns: readonly Item[]): Promise<void> {
  const refusals = await refusalsOf(organisationId, cooldowns)
  const persistent = refusals.filter(({ isPersistent }) => isPersistent)
  await notify(organisationId, notificationsOf(organisationId, persistent))
  await forEachLimit(concurrency, refusals, ({ item, id, isPersistent }) =>
    concludeRefusal(item, isPersistent ? { id, atMs: now() } : undefined),
  )
}

interface Refusal {
  item: Item
  /** The same in a repeated sweep. */
  id: string
  type: string
  dueAtMs: number
  refusedAtMs: number
  cluster: ClusterRecord | undefined
  isPersistent: boolean
}

async function refusalsOf(organisationId: string, items: readonly Item[]): Promise<Refusal[]> {
  const clusterIds = items.map(({ pk }) => keys.clusterOfCooldown(String(pk)))
  const clusters = await getMany(clusterIds.map((id) => keys.cluster(organisationId, id)))
  const outages = await getMany(
    clusterIds.flatMap((id) => outageTypes.map((type) => keys.notificationCooldown(organisationId, id, type))),
  )
  return items.map((item, index) => {
    const cluster = clusters[index] && parseCluster(clusters[index])
    const type = String(item['sk'])
    const dueAtMs = keys.dueTimeOf(String(item['duesk']))
    const hasStatus = cluster !== undefined && currentStatus(cluster) === statusOfType(type)
    const reportedAtMs = Math.max(
      ...outages
        .slice(outageTypes.length * index)
        .slice(0, outageTypes.length)
        .map(lastOf),
    )
    // Users know that a cluster has recovered if no outage was reported since.
    const isNews = type !== 'ClusterRecovered' || reportedAtMs > lastOf(item)
    return {
      item,
      id: derivedId('notif', dueAtMs, String(item['pk']), type),
      type,
      dueAtMs,
      refusedAtMs: parseCooldown(item).refusedAtMs ?? dueAtMs,
      cluster,
      isPersistent: hasStatus && isNews,
    }
  })
}

const outageTypes = ['ClusterHealthDegraded', 'ClusterOffline'] as const
const lastOf = (item: Item | undefined): number => parseCooldown(item).allowed.at(-1)?.atMs ?? 0

function notificationsOf(organisationId: string, refusals: readonly Refusal[]): NewNotification[] {
  if (refusals.length <= maxSingleNotifications) return refusals.flatMap(single)
  return [...Map.groupBy(refusals, ({ type }) => type)].flatMap(([type, of]) => {
    const status = statusOfType(type)
    const [first] = of
    if (status === undefined || first === undefined || of.length === 1) return of.flatMap(single)
    const names = of.map(({ cluster }) => cluster?.name ?? '').toSorted()
    const summary = { organisationId, count: of.length, names: names.slice(0, namesPerNotification) }
    return [{ ...clustersNotification(status, summary), id: first.id }]
  })
}

function single({ id, type, cluster, refusedAtMs }: Refusal): NewNotification[] {
  const status = statusOfType(type)
  if (status === undefined || cluster === undefined) return []
  const body = `Since ${iso(refusedAtMs)}. It is reported late because a notification of this type preceded it.`
  return [{ ...clusterNotification(status, { clusterId: cluster.id, name: cluster.name, body }), id }]
}
