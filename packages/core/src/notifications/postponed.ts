import * as z from 'zod'
import { iso, now } from '../clock.ts'
import { type ClusterRecord, currentStatus, parseCluster } from '../clusters/record.ts'
import * as keys from '../db/keys.ts'
import { get, getMany, type Item } from '../db/table.ts'
import { derivedId } from '../id.ts'
import { forEachLimit } from '../lib/async.ts'
import { concludeRefusal, parseCooldown } from './cooldown.ts'
import { parseSummary, replaceSummary } from './sweep-summary.ts'
import { type NewNotification, notify } from './projection.ts'
import { clusterNotification, clustersNotification, statusOfType } from './templates.ts'

/** If a sweep finds at most this number of changes in an organisation, each change has its own notification. */
export const maxSingleNotifications = 20
const maxNamesPerNotification = 10
const maxConcurrency = 25

/** The shared notifications of many refusals, by type. */
const Groups = z.record(z.string(), z.object({ id: z.string(), count: z.number(), names: z.array(z.string()) }))
type Groups = z.infer<typeof Groups>

/** At the end of cooldowns, reports the changes that they refused if the clusters still have the new status. */
export async function reportPostponed(organisationId: string, cooldowns: readonly Item[]): Promise<void> {
  const key = keys.sweepSummary(organisationId, 'REFUSALS')
  const [refusals, item] = await Promise.all([refusalsOf(organisationId, cooldowns), get(key)])
  const lastSummary = parseSummary(item, Groups)
  const isCovered = ({ dueAtMs }: Refusal) => lastSummary !== undefined && dueAtMs <= lastSummary.atMs
  const persistentRefusals = refusals.filter(({ isPersistent }) => isPersistent)
  const others = persistentRefusals.filter((refusal) => !isCovered(refusal))
  const isGrouped = others.length > maxSingleNotifications
  const groups = isGrouped ? groupsOf(others) : {}
  // Another sweep has stored other groups; the next sweep handles these refusals.
  if (isGrouped && !(await replaceSummary(key, item, now(), groups))) return
  await notify(organisationId, [
    ...notificationsOf(organisationId, persistentRefusals.filter(isCovered), lastSummary?.summary ?? {}),
    ...notificationsOf(organisationId, others, groups),
  ])
  await forEachLimit(maxConcurrency, refusals, ({ item: cooldown, id, isPersistent }) =>
    concludeRefusal(cooldown, isPersistent ? { id, atMs: now() } : undefined),
  )
}

interface Refusal {
  item: Item
  /** A repeated sweep derives the same id. */
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
  const outageCooldowns = await getMany(
    clusterIds.flatMap((id) => outageTypes.map((type) => keys.notificationCooldown(organisationId, id, type))),
  )
  return items.map((item, index) => {
    const cluster = clusters[index] && parseCluster(clusters[index])
    const type = String(item['sk'])
    const dueAtMs = keys.dueMsOf(String(item['duesk']))
    const hasStatus = cluster !== undefined && currentStatus(cluster) === statusOfType(type)
    const reportedAtMs = Math.max(
      ...outageCooldowns
        .slice(outageTypes.length * index)
        .slice(0, outageTypes.length)
        .map(lastEventMs),
    )
    // If no outage was reported since the last recovery, users already see the cluster as recovered.
    const isNews = type !== 'ClusterRecovered' || reportedAtMs > lastEventMs(item)
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
const lastEventMs = (item: Item | undefined): number => parseCooldown(item).allowedEvents.at(-1)?.atMs ?? 0

function groupsOf(refusals: readonly Refusal[]): Groups {
  const byType = [...Map.groupBy(refusals, ({ type }) => type)].filter(([, members]) => members.length > 1)
  return Object.fromEntries(
    byType.map(([type, members]) => {
      const names = members.map(({ cluster }) => cluster?.name ?? '').toSorted()
      return [type, { id: members[0]?.id ?? '', count: members.length, names: names.slice(0, maxNamesPerNotification) }]
    }),
  )
}

const notificationsOf = (organisationId: string, refusals: readonly Refusal[], groups: Groups): NewNotification[] =>
  refusals.flatMap((refusal) => {
    const [status, group] = [statusOfType(refusal.type), groups[refusal.type]]
    if (status === undefined || group === undefined) return singleNotification(refusal)
    return [{ ...clustersNotification(status, { organisationId, ...group }), id: group.id }]
  })

function singleNotification({ id, type, cluster, refusedAtMs }: Refusal): NewNotification[] {
  const status = statusOfType(type)
  if (status === undefined || cluster === undefined) return []
  const body = `Since ${iso(refusedAtMs)}. It is reported late because a notification of this type was sent shortly before.`
  return [{ ...clusterNotification(status, { clusterId: cluster.id, name: cluster.name, body }), id }]
}
