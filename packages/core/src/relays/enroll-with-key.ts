import { timingSafeEqual } from 'node:crypto'
import type { EnrollRequest, EnrollResponse } from '@platform/contract/relay'
import * as z from 'zod'
import { parseApiToken } from '../accounts/api-token-caller.ts'
import { checkQuota } from '../accounts/quota.ts'
import { type User, userUnchanged, userWithPermission } from '../accounts/user.ts'
import { type Origin, system } from '../caller.ts'
import { now } from '../clock.ts'
import { find, joinSiteWrites } from '../clusters/cluster.ts'
import { createLabelsWrite } from '../labels/labels.ts'
import { clustersOf } from '../clusters/list.ts'
import { countOnline, nodesHash, nodesItem } from '../clusters/node.ts'
import { nameAttributes, relayIdsOf, statusCountWrite, statusEvent, statusIndexKeys } from '../clusters/record.ts'
import * as keys from '../db/keys.ts'
import { insertWrite, nextSortTimeMs, parseHead, retryOnConflict } from '../db/offset-list.ts'
import { check, create, getConsistent, type Item, patch, replace } from '../db/table.ts'
import { platformError } from '../error.ts'
import { isId, newId, sha256 } from '../id.ts'
import { commit } from '../outbox/commit.ts'
import {
  alertIntervalMs,
  checkNodeNames,
  enroll,
  enrollResponse,
  labelsAtEnrollment,
  nodesOf,
  startRelay,
} from './enrollment.ts'
import { EnrollmentKeyRecord, repeatableUntil } from './enrollment-key.ts'

/**
 * Many relays enroll with the same key. One transaction counts the use, records the key of the relay and creates
 * its cluster. A relay that repeats the request, because the response was lost, receives the same cluster.
 */

const Use = z.object({ clusterId: z.string(), relayId: z.string(), hostname: z.string() })

export const enrollRelay = (request: EnrollRequest, origin?: Origin): Promise<EnrollResponse> =>
  request.enrollmentKey === undefined ? enroll(request, origin) : enrollWithKey(request.enrollmentKey, request, origin)

async function enrollWithKey(text: string, request: EnrollRequest, origin?: Origin): Promise<EnrollResponse> {
  checkNodeNames(request)
  return retryOnConflict(() => tryEnroll(text, request, origin))
}

async function tryEnroll(text: string, request: EnrollRequest, origin?: Origin): Promise<EnrollResponse | undefined> {
  const [id = '', secret = '', ...extraParts] = text.split('.')
  if (!isId('ekey', id) || extraParts.length > 0) throw platformError('enrollment_key_invalid')
  const useKey = keys.enrollmentKeyUse(id, sha256(request.publicKey.x))
  const [item, use] = await getConsistent([keys.enrollmentKey(id), useKey])
  const key = verifyKey(item, secret)
  if (use !== undefined) {
    const { clusterId, relayId, hostname } = Use.parse(use)
    const cluster = await find(key.organisationId, clusterId)
    // The cluster was removed, or has another relay.
    if (!cluster || !relayIdsOf(cluster).includes(relayId)) throw platformError('enrollment_key_invalid')
    if (hostname === request.hostname) return enrollResponse({ clusterId }, relayId, request)
    await reportCopy(key, { useKey, clusterId }, request, origin)
    throw platformError('enrollment_token_used')
  }
  if (key.revokedAtMs !== undefined) throw platformError('enrollment_key_invalid')
  if (key.expiresAtMs <= now()) throw platformError('enrollment_key_expired')
  if (key.used >= key.maxUses) throw platformError('enrollment_key_used_up')

  const { organisationId, type, siteId } = key
  const clusters = clustersOf(organisationId)
  const names = namesFor(key.nameTemplate, request.hostname)
  const [userItem, tokenItem, headItem, organisation, ...nameItems] = await getConsistent([
    keys.user(organisationId, key.createdBy),
    keys.apiToken(key.tokenId ?? ''),
    clusters.head,
    keys.organisation(organisationId),
    ...names.map((name) => keys.clusterName(organisationId, name)),
  ])
  const issuer = await authorizedIssuer(key, userItem, tokenItem)
  const head = parseHead(headItem)
  checkQuota(organisation, 'clusters', head.total)
  const timeMs = nextSortTimeMs(head)
  const [clusterId, relayId] = [newId('clus', timeMs), newId('relay')]
  const name = names.find((_, index) => nameItems[index] === undefined) ?? unusedName(names, clusterId)
  const nodes = nodesOf({ clusterId }, request)
  const relay = {
    relayName: request.displayName,
    nodeCount: nodes.length,
    nodesOnline: countOnline(nodes),
    nodesHash: nodesHash(nodes),
  }
  const cluster = { organisationId, id: clusterId, type, siteId }
  const startChange = startRelay(cluster, { relayId, ...relay })
  const pendingFields = { ...relay, pendingRelayId: relayId, ...statusIndexKeys(cluster, 'Pending') }
  const status = key.requireApproval ? ('Pending' as const) : startChange.status
  const stateFields = key.requireApproval ? pendingFields : startChange.set
  const { hostname, platform, relayVersion } = request
  const record = { relayId, organisationId, clusterId, publicKey: request.publicKey.x, enrolledAtMs: now() }
  const failure = await commit(system(organisationId, origin?.address), {
    writes: [
      patch(
        keys.enrollmentKey(id),
        { set: { lastUsedAtMs: now() }, add: { used: 1 } },
        { used: { absentOrAtMost: key.maxUses - 1 }, revokedAtMs: { absent: true } },
      ),
      create(useKey, { clusterId, relayId, hostname, ttl: repeatableUntil() }),
      check(keys.user(organisationId, issuer.id), { pk: { present: true }, ...userUnchanged(issuer) }),
      ...(key.tokenId === undefined ? [] : [check(keys.apiToken(key.tokenId), { pk: { present: true } })]),
      create(keys.clusterName(organisationId, name), nameAttributes(clusterId, name)),
      insertWrite(clusters, head, timeMs),
      create(keys.cluster(organisationId, clusterId), {
        id: clusterId,
        name,
        type,
        siteId,
        activeJobs: 0,
        waitingJobs: 0,
        ...stateFields,
      }),
      createLabelsWrite(cluster, key.labels, labelsAtEnrollment(request)),
      statusCountWrite(cluster, undefined, status),
      create(keys.relay(relayId), { ...record, hostname, platform, relayVersion }),
      replace(keys.nodes(organisationId, clusterId), { ...nodesItem(nodes), relayVersion }),
      ...joinSiteWrites(organisationId, siteId),
    ],
    audit: { action: 'relay.enroll', resource: clusterId, detail: `${relayId} on ${hostname} with ${id}` },
    events: [
      { name: 'cluster.registered', subject: clusterId, data: { clusterId, name, type } },
      ...(key.requireApproval ? [] : enrolledEvents({ id: clusterId, name, status: 'Pending' }, relayId, nodes.length)),
    ],
  })
  return failure === undefined ? enrollResponse({ clusterId }, relayId, request) : undefined
}

export const enrolledEvents = (cluster: Parameters<typeof statusEvent>[0], relayId: string, nodeCount: number) => [
  {
    name: 'cluster.enrolled' as const,
    subject: cluster.id,
    data: { clusterId: cluster.id, name: cluster.name, relayId, nodeCount },
  },
  statusEvent(cluster, 'Healthy'),
]

function verifyKey(item: Item | undefined, secret: string): EnrollmentKeyRecord {
  const record = item && EnrollmentKeyRecord.parse(item)
  if (!record || !timingSafeEqual(Buffer.from(record.hash), Buffer.from(sha256(secret))))
    throw platformError('enrollment_key_invalid')
  return record
}

/**
 * The same relay key on another machine means that the state folder of the relay was copied. Emits at most one event
 * per hour.
 */
async function reportCopy(
  { id, organisationId }: EnrollmentKeyRecord,
  { useKey, clusterId }: { useKey: keys.Key; clusterId: string },
  { hostname }: EnrollRequest,
  origin: Origin | undefined,
): Promise<void> {
  const alarmHour = Math.floor(now() / alertIntervalMs)
  await commit(system(organisationId, origin?.address), {
    writes: [patch(useKey, { set: { alarmHour } }, { alarmHour: { isNot: alarmHour } })],
    audit: { action: 'relay.refuse', resource: clusterId, detail: `Copied relay key on ${hostname}, ${id}` },
    events: [{ name: 'enrollment.reuse_detected', subject: clusterId, data: { clusterId, enrollmentId: id } }],
  })
}

/**
 * A key is valid only while its creator may write clusters, and while the API token that created the key, if any, is
 * valid.
 */
async function authorizedIssuer(
  { tokenId }: EnrollmentKeyRecord,
  item: Item | undefined,
  tokenItem: Item | undefined,
): Promise<User> {
  const user = await userWithPermission(item, 'clusters:write')
  const token = tokenItem && parseApiToken(tokenItem)
  const isTokenValid = tokenId === undefined || (token !== undefined && (token.expiresAtMs ?? Infinity) > now())
  if (user === undefined || !isTokenValid) throw platformError('enrollment_key_invalid')
  return user
}

const maxNameLength = 64
/** One request reads at most 100 items: these names and four others. */
const maxNames = 90

/** Returns the name from the template, then the same name with numbers from 2. */
export function namesFor(template: string, hostname: string): string[] {
  const filledTemplate = template.replaceAll('{hostname}', hostname).slice(0, maxNameLength).toWellFormed().trim()
  const base = filledTemplate.length < 3 ? `host-${filledTemplate}` : filledTemplate
  return [base, ...Array.from({ length: maxNames - 1 }, (_, index) => withSuffix(base, String(index + 2)))]
}

const withSuffix = (base: string, suffix: string): string =>
  `${base
    .slice(0, maxNameLength - suffix.length - 1)
    .toWellFormed()
    .trimEnd()}-${suffix}`

const unusedName = ([base = '']: readonly string[], clusterId: string): string => withSuffix(base, clusterId.slice(-8))
