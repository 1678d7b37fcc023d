import { timingSafeEqual } from 'node:crypto'
import type { Enrollment } from '@platform/contract/cluster'
import type { Labels } from '@platform/contract/label'
import type { EnrollRequest, EnrollResponse } from '@platform/contract/relay'
import { wakeRelay } from '../aws/wake-relay.ts'
import { type Caller, type Origin, system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { iso, now } from '../clock.ts'
import * as Cluster from '../clusters/cluster.ts'
import {
  type ClusterRecord,
  intervals,
  parseCluster,
  relayIdsOf,
  statusCountWrite,
  statusEvent,
  statusIndexKeys,
} from '../clusters/record.ts'
import { config } from '../config.ts'
import { unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { create, get, patch, remove, replace } from '../db/table.ts'
import {
  createEnrollmentToken,
  type EnrollmentRecord,
  EnrollmentRecord as StoredEnrollment,
} from '../clusters/enrollment-token.ts'
import { platformError, storeContentionError, validationFailedError } from '../error.ts'
import { derivedId, isId, sha256, timeMsOf } from '../id.ts'
import { factLabels } from '../clusters/facts.ts'
import { reportedLabelsWrite } from '../labels/labels.ts'
import { nodesHash, nodesItem, type StoredNode } from '../clusters/node.ts'
import { statementKeys } from '../signing/statement-keys.ts'
import { markerFields } from './update-offer.ts'
import { reauthorize } from '../accounts/current-rights.ts'
import { clusterStatus, nextCheckAfterHeartbeat, withSilence } from '../clusters/status.ts'

/** Within this time, the same token and key return the same result, because the first response may have been lost. */
const repeatMs = 600_000
export const alertIntervalMs = 3_600_000
const maxAttempts = 5

export async function issue(caller: Caller, clusterId: string): Promise<Enrollment> {
  const { organisationId } = caller
  if (!isId('clus', clusterId)) throw platformError('cluster_not_found')
  const itemKeys = [keys.cluster(organisationId, clusterId), keys.platform()]
  const [, item, platform] = await reauthorize(caller, ['clusters:write'], itemKeys)
  if (item === undefined) throw platformError('cluster_not_found')
  const record = parseCluster(item)
  const enrollment = createEnrollmentToken(caller, clusterId, platform)
  const failure = await commit(caller, {
    writes: [
      patch(
        keys.cluster(organisationId, clusterId),
        { set: { enrollmentId: enrollment.id } },
        { enrollmentId: unchangedCondition(record.enrollmentId) },
      ),
      enrollment.write,
      ...(record.enrollmentId === undefined ? [] : [remove(keys.enrollment(record.enrollmentId))]),
    ],
    response: enrollment.view,
    audit: { action: 'cluster.issue_enrollment_token', resource: clusterId, detail: enrollment.id },
  })
  if (failure) throw platformError(failure.item === undefined ? 'cluster_not_found' : 'conflict')
  return enrollment.view
}

/** Binds the relay's key to the cluster and replaces the previous relay. */
export async function enroll(request: EnrollRequest, origin?: Origin): Promise<EnrollResponse> {
  checkNodeNames(request)
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const response = await tryEnroll(request, sha256(request.publicKey.x), origin)
    if (response !== undefined) return response
  }
  throw storeContentionError()
}

export function checkNodeNames({ nodes }: EnrollRequest): void {
  if (new Set(nodes.map(({ name }) => name)).size === nodes.length) return
  throw validationFailedError([
    { in: 'body', path: '/nodes', code: 'not_unique', message: 'node names must be unique' },
  ])
}

async function tryEnroll(
  request: EnrollRequest,
  thumbprint: string,
  origin: Origin | undefined,
): Promise<EnrollResponse | undefined> {
  const token = await verifyToken(request.enrollmentToken)
  if (token.usedAtMs !== undefined) return respondToRepeat(token, thumbprint, request, origin)
  if (token.expiresAtMs <= now()) throw platformError('enrollment_token_expired')
  const cluster = await Cluster.find(token.organisationId, token.clusterId)
  if (cluster?.enrollmentId !== token.id) {
    const latestToken = await verifyToken(request.enrollmentToken)
    if (latestToken.usedAtMs === undefined) throw platformError('enrollment_token_invalid')
    return respondToRepeat(latestToken, thumbprint, request, origin)
  }
  const relayId = relayIdOf(token, thumbprint)
  const { id: clusterId, name, relayId: previousRelayId } = cluster
  const failure = await commit(system(token.organisationId, origin?.address), {
    writes: enrollmentWrites(token, cluster, relayId, thumbprint, request),
    audit: { action: 'relay.enroll', resource: clusterId, detail: `${relayId} on ${request.hostname}` },
    events: [
      {
        name: 'cluster.enrolled',
        subject: clusterId,
        data: { clusterId, name, relayId, nodeCount: request.nodes.length },
      },
      ...(previousRelayId === undefined
        ? []
        : [
            {
              name: 'relay.replaced' as const,
              subject: clusterId,
              data: { clusterId, name, relayId, previousRelayId },
            },
          ]),
      ...(cluster.status === 'Healthy' ? [] : [statusEvent(cluster, 'Healthy')]),
    ],
  })
  if (failure !== undefined) return undefined
  // A replaced relay learns from its next heartbeat that it is revoked.
  if (previousRelayId !== undefined) await wakeRelay(clusterId)
  return enrollResponse(token, relayId, request)
}

async function verifyToken(text = ''): Promise<EnrollmentRecord> {
  const [id = '', secret = '', ...extraParts] = text.split('.')
  const item = isId('enroll', id) && extraParts.length === 0 ? await get(keys.enrollment(id)) : undefined
  const record = item && StoredEnrollment.parse(item)
  if (!record || !timingSafeEqual(Buffer.from(record.hash), Buffer.from(sha256(secret))))
    throw platformError('enrollment_token_invalid')
  return record
}

async function respondToRepeat(
  token: EnrollmentRecord,
  thumbprint: string,
  request: EnrollRequest,
  origin: Origin | undefined,
): Promise<EnrollResponse> {
  const isRepeat = token.keyThumbprint === thumbprint && now() < (token.usedAtMs ?? 0) + repeatMs
  if (isRepeat && token.relayId !== undefined) return enrollResponse(token, token.relayId, request)
  await reportReuse(token, origin)
  throw platformError('enrollment_token_used')
}

/** Reuse suggests a stolen token. Emits at most one event per hour. */
async function reportReuse(
  { organisationId, clusterId, id: enrollmentId }: EnrollmentRecord,
  origin: Origin | undefined,
) {
  const alarmHour = Math.floor(now() / alertIntervalMs)
  await commit(system(organisationId, origin?.address), {
    writes: [patch(keys.enrollment(enrollmentId), { set: { alarmHour } }, { alarmHour: { isNot: alarmHour } })],
    audit: { action: 'relay.refuse', resource: clusterId, detail: `Second use of ${enrollmentId}` },
    events: [{ name: 'enrollment.reuse_detected', subject: clusterId, data: { clusterId, enrollmentId } }],
  })
}

// Ids are derived, so that a repeated enrollment returns the same relay and nodes.
const relayIdOf = (token: EnrollmentRecord, thumbprint: string): string =>
  derivedId('relay', timeMsOf(token.id), token.id, thumbprint)
export const nodesOf = (token: Pick<EnrollmentRecord, 'clusterId'>, { nodes }: EnrollRequest): StoredNode[] =>
  nodes.map(({ name }) => ({
    id: derivedId('node', timeMsOf(token.clusterId), token.clusterId, name),
    name,
    status: 'Online',
  }))

/** Returns the labels of a cluster until the relay reports its facts. */
export const labelsAtEnrollment = ({ platform, relayVersion }: EnrollRequest): Labels =>
  factLabels({ relayVersion, custom: {}, nodes: [{ id: '', os: platform.split(' ')[0] }] })

/** Fields of a cluster that describe its relay. They are removed when a new relay enrolls. */
const fieldsOfRelay = [
  'pendingRelayId',
  'scriptsIsolated',
  'factsHash',
  'instanceId',
  'formerInstances',
  'duplicateReportedAtMs',
  'channelId',
  'channelOpenedAtMs',
  'channelClosedAtMs',
  ...markerFields,
]

/** Returns the status and the fields of a cluster whose relay enrolls or is approved. */
export function startRelay(
  cluster: Pick<ClusterRecord, 'organisationId' | 'id' | 'type'>,
  relay: Pick<ClusterRecord, 'relayName' | 'nodeCount' | 'nodesOnline' | 'nodesHash'> & { relayId: string },
) {
  const presenceFields = { lastSeenAtMs: now(), isSteady: true, saidGoodbye: false }
  const presence = { ...relay, ...presenceFields, recentTokens: '0', beatNonce: '' }
  const status = clusterStatus(withSilence(presence, intervals), now())
  const dueAtMs = nextCheckAfterHeartbeat(now(), 0, intervals.heartbeatSeconds) ?? now()
  return {
    status,
    set: { ...presence, ...statusIndexKeys(cluster, status), ...keys.dueIndexKeys(cluster.id, dueAtMs) },
  }
}

function enrollmentWrites(
  token: EnrollmentRecord,
  cluster: ClusterRecord,
  relayId: string,
  thumbprint: string,
  request: EnrollRequest,
) {
  const { organisationId, clusterId } = token
  const nodes = nodesOf(token, request)
  const { set, status } = startRelay(cluster, {
    relayId,
    relayName: request.displayName,
    nodeCount: nodes.length,
    nodesOnline: nodes.length,
    nodesHash: nodesHash(nodes),
  })
  const relay = { relayId, organisationId, clusterId, publicKey: request.publicKey.x, enrolledAtMs: now() }
  const host = { hostname: request.hostname, platform: request.platform, relayVersion: request.relayVersion }
  return [
    patch(
      keys.enrollment(token.id),
      { set: { usedAtMs: now(), keyThumbprint: thumbprint, relayId } },
      { usedAtMs: { absent: true } },
    ),
    patch(
      keys.cluster(organisationId, clusterId),
      { set, remove: ['enrollmentId', ...fieldsOfRelay] },
      {
        enrollmentId: { is: token.id },
        status: { is: cluster.status },
        pendingRelayId: unchangedCondition(cluster.pendingRelayId),
      },
    ),
    create(keys.relay(relayId), { ...relay, ...host }),
    replace(keys.nodes(organisationId, clusterId), { ...nodesItem(nodes), relayVersion: request.relayVersion }),
    reportedLabelsWrite(organisationId, clusterId, labelsAtEnrollment(request)),
    ...relayIdsOf(cluster).map((id) => remove(keys.relay(id))),
    ...(cluster.status === status ? [] : [statusCountWrite(cluster, cluster.status, status)]),
  ]
}

export const enrollResponse = async (
  token: Pick<EnrollmentRecord, 'clusterId'>,
  relayId: string,
  request: EnrollRequest,
): Promise<EnrollResponse> => ({
  relayId,
  clusterId: token.clusterId,
  heartbeatIntervalSeconds: config.PLAT_HEARTBEAT_INTERVAL_SECONDS,
  serverTime: iso(now()),
  keys: await statementKeys(),
  nodes: nodesOf(token, request).map(({ id, name }) => ({ id, name })),
})
