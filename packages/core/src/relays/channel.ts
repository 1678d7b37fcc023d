import type { Channel } from '@platform/contract/relay'
import * as z from 'zod'
import { enqueueClusterSweep } from '../aws/queues.ts'
import { wakeTopic } from '../aws/wake-relay.ts'
import type { RelayCaller } from '../caller.ts'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import { PlatformError } from '../error.ts'
import { isId } from '../id.ts'
import { recordChannelEvent } from './channel-presence.ts'
import { authenticateRelay } from './request-auth.ts'

/** The broker closes a connection after silence of 1.5 times this period. */
const keepAliveSeconds = 40

interface ChannelOwner extends Pick<RelayCaller, 'relayId' | 'clusterId'> {
  /** Identifies one run of the relay program, so that two relays with one key do not close each other's channel. */
  instanceId?: string | undefined
}

/** Returns undefined if the platform has no broker, or the relay sent no instance id. */
export const channelFor = ({ relayId, clusterId, instanceId }: ChannelOwner): Channel | undefined =>
  config.PLAT_CHANNEL_URL === '' || instanceId === undefined
    ? undefined
    : {
        url: config.PLAT_CHANNEL_URL,
        clientId: `${config.PLAT_CHANNEL_PREFIX}-${relayId}-${instanceId}`,
        topic: wakeTopic(clusterId),
        username: '',
        keepAliveSeconds,
      }

/** Returns undefined for a client id of another stage or form. */
function relayIdIn(clientId: string): string | undefined {
  const prefix = `${config.PLAT_CHANNEL_PREFIX}-`
  const [, relayId = ''] = /^([^-]+)-[0-9A-Za-z-]{8,40}$/.exec(clientId.slice(prefix.length)) ?? []
  return clientId.startsWith(prefix) && isId('relay', relayId) ? relayId : undefined
}

export interface ChannelGrant {
  relayId: string
  clientId: string
  topic: string
}

/**
 * Verifies the password of a connection: the relay's signed token for the path `mqtt:<client id>`. Returns undefined if
 * the relay may not connect.
 */
export async function authorizeChannel(clientId: string, password: string): Promise<ChannelGrant | undefined> {
  const relayId = relayIdIn(clientId)
  if (relayId === undefined) return undefined
  try {
    const caller = await authenticateRelay(password, `mqtt:${clientId}`, undefined, { isFresh: true })
    return caller.relayId === relayId ? { relayId, clientId, topic: wakeTopic(caller.clusterId) } : undefined
  } catch (error) {
    if (error instanceof PlatformError && ['relay_revoked', 'unauthenticated'].includes(error.code)) return undefined
    throw error
  }
}

/** An event of the broker, in the form of AWS IoT. */
export const ChannelEvent = z.object({
  clientId: z.string().max(128),
  timestamp: z.int().min(0),
  eventType: z.enum(['connected', 'disconnected']),
  sessionIdentifier: z.string().max(100),
  versionNumber: z.int().min(0).default(0),
  disconnectReason: z.string().max(100).optional(),
})
export type ChannelEvent = z.infer<typeof ChannelEvent>

export async function handleChannelEvent(event: ChannelEvent): Promise<void> {
  const { clientId, sessionIdentifier: session, versionNumber: version, timestamp: atMs } = event
  const relayId = relayIdIn(clientId)
  if (relayId === undefined) return
  const isOpen = event.eventType === 'connected'
  const channelChange = await recordChannelEvent({ relayId, clientId, session, version, isOpen, atMs })
  if (channelChange?.checkAtMs !== undefined) await checkClustersAt(channelChange.checkAtMs)
}

/** Later checks are left to the regular sweep. */
const maxCheckDelayMs = 10_000
let nextCheckAtMs = 0

/**
 * A check covers all clusters, so no check is requested if the last requested one runs within a second after `atMs`.
 */
async function checkClustersAt(atMs: number): Promise<void> {
  const delaySeconds = Math.max(0, Math.ceil((atMs - now()) / 1000))
  const isCovered = atMs <= nextCheckAtMs && nextCheckAtMs < atMs + 1000
  if (isCovered || delaySeconds * 1000 > maxCheckDelayMs) return
  nextCheckAtMs = now() + delaySeconds * 1000
  await enqueueClusterSweep(delaySeconds)
}
