import * as z from 'zod'
import { now } from '../clock.ts'
import * as Cluster from '../clusters/cluster.ts'
import { type ClusterRecord, intervals } from '../clusters/record.ts'
import { nextCheckAfterSweep, withSilence } from '../clusters/status.ts'
import { unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { get, tryUpdate } from '../db/table.ts'
import { storeContentionError } from '../error.ts'
import { sha256 } from '../id.ts'

/**
 * An event that the broker reports about the control channel of a relay. Events may repeat, be lost or arrive in any
 * order.
 */
export interface ChannelEvent {
  relayId: string
  clientId: string
  /** Differs for each connection. */
  session: string
  /** Increases with the connections of one client, but starts again after an hour without a connection. */
  version: number
  isOpen: boolean
  atMs: number
}

const maxAttempts = 4

const RelayItem = z.object({ organisationId: z.string(), clusterId: z.string() })

/** Returns undefined if the event changes nothing, for example because another relay has replaced this one. */
export async function recordChannelEvent(
  event: ChannelEvent,
): Promise<{ organisationId: string; clusterId: string; checkAtMs?: number } | undefined> {
  const item = await get(keys.relay(event.relayId))
  if (item === undefined) return undefined
  const { organisationId, clusterId } = RelayItem.parse(item)
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const cluster = await Cluster.find(organisationId, clusterId)
    if (cluster?.relayId !== event.relayId) return undefined
    const channel = channelAfter(cluster, event)
    if (channel === undefined) return undefined
    const checkAtMs = nextCheckAfterClose({ ...cluster, ...channel })
    const dueAttributes = checkAtMs === undefined ? {} : keys.dueIndexKeys(clusterId, checkAtMs)
    const isOpen = channel.channelClosedAtMs === undefined
    const condition = {
      relayId: { is: event.relayId },
      channelId: unchangedCondition(cluster.channelId),
      channelClosedAtMs: unchangedCondition(cluster.channelClosedAtMs),
    }
    const change = { set: { ...channel, ...dueAttributes }, remove: isOpen ? ['channelClosedAtMs'] : [] }
    if (await tryUpdate(keys.cluster(organisationId, clusterId), change, condition))
      return { organisationId, clusterId, ...(checkAtMs !== undefined && { checkAtMs }) }
  }
  throw storeContentionError()
}

const nextCheckAfterClose = (record: ClusterRecord): number | undefined =>
  record.channelClosedAtMs === undefined ? undefined : nextCheckAfterSweep(withSilence(record, intervals), now())

type StoredChannel = Pick<ClusterRecord, 'channelId' | 'channelOpenedAtMs' | 'channelClosedAtMs'>

/**
 * Returns the changed fields, or undefined if the event is a repetition or older than the stored fields.
 */
function channelAfter(storedChannel: StoredChannel, event: ChannelEvent): StoredChannel | undefined {
  // The clocks of the broker and of this function may differ.
  const atMs = Math.min(event.atMs, now())
  const { channelId: id, channelOpenedAtMs: openedAtMs = 0 } = storedChannel
  const channelId = idOf(event)
  const [client, session, version] = channelId.split('.')
  const [storedClient, storedSession, storedVersion] = id?.split('.') ?? []
  if (storedClient === client && storedSession === session) {
    const isClose = !event.isOpen && storedChannel.channelClosedAtMs === undefined
    return isClose
      ? { channelId, channelOpenedAtMs: openedAtMs, channelClosedAtMs: Math.max(atMs, openedAtMs) }
      : undefined
  }
  const isLater = id === undefined || (storedClient === client && Number(version) > Number(storedVersion))
  if (event.isOpen) return isLater || atMs > openedAtMs ? { channelId, channelOpenedAtMs: atMs } : undefined
  // The end of an unknown connection is stored, so that the event of its start has no effect if it arrives later.
  return isLater ? { channelId, channelOpenedAtMs: atMs, channelClosedAtMs: atMs } : undefined
}

/** The id is short, because every byte of a cluster adds to the cost of lists. */
const idOf = ({ clientId, session, version }: ChannelEvent): string =>
  [sha256(clientId).slice(0, 10), sha256(session).slice(0, 10), version].join('.')
