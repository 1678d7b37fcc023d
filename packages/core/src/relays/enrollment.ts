import { timingSafeEqual } from 'node:crypto'
import { type Enrollment } from '@platform/contract/cluster'
import { type EnrollResponse, type EnrollRequest } from '@platform/contract/relay'
import { type Caller, type Origin, system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { iso, now } from '../clock.ts'
import * as Cluster from '../clusters/cluster.ts'
import { type ClusterRecord, statusIndexKeys, parseCluster, statusEvent, statusCountWrite } from '../clusters/record.ts'
import { config } from '../config.ts'
import { unchanged } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { create, get, patch, remove, replace } from '../db/table.ts'
import { type EnrollmentRecord, EnrollmentRecord as Row, createEnrollmentToken } from '../clusters/enrollment-token.ts'
import { storeContention, platformError, validationFailed } from '../error.ts'
import { derivedId, isId, sha256, timeOf } from '../id.ts'
import { nodesHash, nodesItem, type StoredNode } from '../clusters/node.ts'
import { statementKeys } from '../signing/keys.ts'
import { reauthorize } from '../accounts/current-rights.ts'
import { clusterStatus, nextCheckAfterHeartbeat } from '../clusters/status.ts'

/** Enrollment: exchanges a token for a relay identity, once. */

/** The same token and key return the same result for this long, because the first response may have been lost. */
const repeatMs = 600_000
const alarmEveryMs = 3_600_000
const attempts = 5

/** Issues a new token for a cluster and revokes the unused one. Two calls. */
export async function issue(caller: Caller, clusterId: string): Promise<Enrollment> {
  const { organisationId } = caller
  if (!isId('clus', clusterId)) throw platformError('cluster_not_found')
  const [, item] = await reauthorize(caller, ['clusters:write'], [keys.cluster(organisationId, clusterId)])
  if (item === undefined) throw platformError('cluster_not_found')
  const row = parseCluster(item)
  const enrollment = createEnrollmentToken(organisationId, clusterId)
  const refusal = await commit(caller, {
    writes: [
      patch(
        keys.cluster(organisationId, clusterId),
        { set: { enrollmentId: enrollment.id } },
        { enrollmentId: unchanged(row.enrollmentId) },
      ),
      enrollment.step,
      ...(row.enrollmentId === undefined ? [] : [remove(keys.enrollment(row.enrollmentId))]),
    ],
    answer: enrollment.shown,
    audit: { action: 'cluster.issue_enrollment_token', resource: clusterId, detail: enrollment.id },
  })
  if (refusal) throw platformError(refusal.item === undefined ? 'cluster_not_found' : 'conflict')
  return enrollment.shown
}

/** Enrolls a relay: binds its key to the cluster and replaces the previous relay. Four calls. */
export async function enroll(request: EnrollRequest, origin?: Origin): Promise<EnrollResponse> {
  if (new Set(request.nodes.map(({ name }) => name)).size < request.nodes.length) {
    throw validationFailed([{ in: 'body', path: '/nodes', code: 'not_unique', message: 'node names must be unique' }])
  }
  for (let attempt = 0; attempt < attempts; attempt++) {
    const enrolled = await tryEnroll(request, sha256(request.publicKey.x), origin)
    if (enrolled !== undefined) return enrolled
  }
  throw storeContention()
}

/** Undefined after a concurrent change of the token or cluster; then retry. */
async function tryEnroll(
  request: EnrollRequest,
  thumbprint: string,
  origin: Origin | undefined,
): Promise<EnrollResponse | undefined> {
  const token = await genuineToken(request.enrollmentToken)
  if (token.usedAtMs !== undefined) return repeated(token, thumbprint, request, origin)
  if (token.expiresAtMs <= now()) throw platformError('enrollment_token_expired')
  const cluster = await Cluster.find(token.organisationId, token.clusterId)
  if (cluster?.enrollmentId !== token.id) {
    const latest = await genuineToken(request.enrollmentToken)
    if (latest.usedAtMs === undefined) throw platformError('enrollment_token_invalid')
    return repeated(latest, thumbprint, request, origin)
  }
  const relayId = relayIdOf(token, thumbprint)
  const { id: clusterId, name, relayId: previousRelayId } = cluster
  const refusal = await commit(system(token.organisationId, origin?.address), {
    writes: steps(token, cluster, relayId, thumbprint, request),
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
  return refusal === undefined ? answer(token, relayId, request) : undefined
}

async function genuineToken(text: string): Promise<EnrollmentRecord> {
  const [id = '', secret = '', ...more] = text.split('.')
  const item = isId('enroll', id) && more.length === 0 ? await get(keys.enrollment(id)) : undefined
  const row = item && Row.parse(item)
  if (!row || !timingSafeEqual(Buffer.from(row.hash), Buffer.from(sha256(secret))))
    throw platformError('enrollment_token_invalid')
  return row
}

async function repeated(
  token: EnrollmentRecord,
  thumbprint: string,
  request: EnrollRequest,
  origin: Origin | undefined,
): Promise<EnrollResponse> {
  const isRepeat = token.keyThumbprint === thumbprint && now() < (token.usedAtMs ?? 0) + repeatMs
  if (isRepeat && token.relayId !== undefined) return answer(token, token.relayId, request)
  await raiseAlarm(token, origin)
  throw platformError('enrollment_token_used')
}

/** Reuse suggests that the token was stolen. At most one alarm per hour. */
async function raiseAlarm(
  { organisationId, clusterId, id: enrollmentId }: EnrollmentRecord,
  origin: Origin | undefined,
) {
  const alarmHour = Math.floor(now() / alarmEveryMs)
  await commit(system(organisationId, origin?.address), {
    writes: [patch(keys.enrollment(enrollmentId), { set: { alarmHour } }, { alarmHour: { isNot: alarmHour } })],
    audit: { action: 'relay.refuse', resource: clusterId, detail: `Second use of ${enrollmentId}` },
    events: [{ name: 'enrollment.reuse_detected', subject: clusterId, data: { clusterId, enrollmentId } }],
  })
}

// Derived, so that a repeated enrollment returns the same relay and nodes.
const relayIdOf = (token: EnrollmentRecord, thumbprint: string): string =>
  derivedId('relay', timeOf(token.id), token.id, thumbprint)
const nodesOf = (token: EnrollmentRecord, { nodes }: EnrollRequest): StoredNode[] =>
  nodes.map(({ name }) => ({
    id: derivedId('node', timeOf(token.clusterId), token.clusterId, name),
    name,
    status: 'Online',
  }))

function steps(
  token: EnrollmentRecord,
  cluster: ClusterRecord,
  relayId: string,
  thumbprint: string,
  request: EnrollRequest,
) {
  const { organisationId, clusterId } = token
  const nodes = nodesOf(token, request)
  const presence = {
    relayId,
    relayName: request.displayName,
    lastSeenAtMs: now(),
    isSteady: true,
    saidGoodbye: false,
    nodeCount: nodes.length,
    nodesOnline: nodes.length,
    nodesHash: nodesHash(nodes),
    recentTokens: '0',
    beatNonce: '',
  }
  const interval = config.PLAT_HEARTBEAT_INTERVAL_SECONDS
  const status = clusterStatus(presence, now(), interval)
  const dueAtMs = nextCheckAfterHeartbeat(now(), 0, interval) ?? now()
  const set = { ...presence, ...statusIndexKeys(cluster, status), ...keys.due(clusterId, dueAtMs) }
  const relay = { relayId, organisationId, clusterId, publicKey: request.publicKey.x, enrolledAtMs: now() }
  const facts = { hostname: request.hostname, platform: request.platform, relayVersion: request.relayVersion }
  return [
    patch(
      keys.enrollment(token.id),
      { set: { usedAtMs: now(), keyThumbprint: thumbprint, relayId } },
      { usedAtMs: { absent: true } },
    ),
    patch(
      keys.cluster(organisationId, clusterId),
      { set, remove: ['enrollmentId'] },
      { enrollmentId: { is: token.id }, status: { is: cluster.status } },
    ),
    create(keys.relay(relayId), { ...relay, ...facts }),
    replace(keys.nodes(organisationId, clusterId), nodesItem(nodes)),
    ...(cluster.relayId === undefined ? [] : [remove(keys.relay(cluster.relayId))]),
    ...(cluster.status === status ? [] : [statusCountWrite(cluster, cluster.status, status)]),
  ]
}

const answer = async (token: EnrollmentRecord, relayId: string, request: EnrollRequest): Promise<EnrollResponse> => ({
  relayId,
  clusterId: token.clusterId,
  heartbeatIntervalSeconds: config.PLAT_HEARTBEAT_INTERVAL_SECONDS,
  serverTime: iso(now()),
  keys: await statementKeys(),
  nodes: nodesOf(token, request).map(({ id, name }) => ({ id, name })),
})
