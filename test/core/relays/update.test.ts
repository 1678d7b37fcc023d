import type { Heartbeat } from '@platform/contract/relay'
import type { Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { get, update as change } from '@platform/core/db/table'
import { version } from '@platform/core/lib/version'
import { enroll, issue } from '@platform/core/relays/enrollment'
import { goodbye, heartbeat } from '@platform/core/relays/heartbeat'
import * as Update from '@platform/core/relays/update'
import { advance } from '@platform/core/relays/update-advance'
import { parseRelayUpdate } from '@platform/core/relays/update-record'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import {
  bootstrapPlatform,
  enrollRequest,
  errorCodeOf,
  errorOf,
  expectError,
  newCaller,
} from '../../support/fixtures.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { runProjections } from '../support/batches.ts'
import { failCommands, runBefore } from '../support/interleaving.ts'
import { listNotifications } from '../support/notifications.ts'
import { readAuditEntries } from '../support/outbox.ts'
import { storeUpdateState } from '../support/updates.ts'

const relay = { sha256: 'a'.repeat(64), signature: 'c2ln' }

beforeAll(bootstrapPlatform)
beforeEach(() => storeUpdateState({ version, relay }))

/** Registers a cluster and enrolls a relay, by default with an earlier version. */
async function newSite(caller: Caller, relayVersion = '0.0.1') {
  const name = `site ${crypto.randomUUID().slice(0, 8)}`
  const { id, enrollmentToken } = await Cluster.register(caller, { name, type: 'Hypervisor' })
  const join = async (token: string) => {
    const { relayId, nodes } = await enroll({ ...enrollRequest(token), relayVersion })
    const request = () => ({
      ...{ kind: 'relay' as const, relayId, organisationId: caller.organisationId, clusterId: id },
      ...{ tokenId: crypto.randomUUID(), issuedAtMs: Date.now() },
    })
    const onlineNodes = nodes.map((node) => ({ id: node.id, status: 'Online' as const }))
    const beat = (update?: Heartbeat['update']) =>
      heartbeat(request(), { nodes: onlineNodes, running: [], freeSlots: 1, ...(update && { update }) })
    return { beat, leave: () => goodbye(request(), { reason: '' }) }
  }
  return {
    id,
    name,
    ...(await join(enrollmentToken)),
    rejoin: async () => join((await issue(caller, id)).enrollmentToken),
  }
}

async function newFleet(size: number, settings: object = {}) {
  const caller = await newCaller()
  const sites: Awaited<ReturnType<typeof newSite>>[] = []
  while (sites.length < size) sites.push(await newSite(caller))
  const { id } = await Update.create(caller, { target: { all: true }, ...settings })
  const readRecord = async () => parseRelayUpdate((await get(keys.relayUpdate(caller.organisationId, id))) ?? {})
  const sweep = async () => advance(await readRecord())
  const report = async ({ beat }: Pick<(typeof sites)[0], 'beat'>, status: 'completed' | 'rolledBack' | 'skipped') =>
    beat({ id, status, reason: 'exit 4' })
  const findOfferedSites = async (among = sites) => {
    const updates = await Promise.all(among.map(async ({ beat }) => (await beat()).update))
    return among.filter((_, index) => updates[index] !== undefined)
  }
  const clusters = async (query: object = {}) => Update.listClusters(caller, id, { page: 1, pageSize: 100, ...query })
  return {
    caller,
    sites,
    id,
    sweep,
    report,
    offered: findOfferedSites,
    readRecord,
    clusters,
    read: () => Update.read(caller, id),
  }
}

const readCounts = async ({ read }: { read: () => ReturnType<typeof Update.read> }) => (await read()).counts

test('canaries complete first, then groups follow, and relays that are offline wait', async () => {
  const fleet = await newFleet(5, { canary: 1, maxConcurrent: 2 })
  const { caller, sites, sweep, report, offered } = fleet
  const [offlineSite, onlineSites] = [sites[4]!, sites.slice(0, 4)]
  await offlineSite.leave()
  await sweep()
  await sweep()
  const [canary, ...others] = await offered(onlineSites)
  expect(others).toEqual([])
  await canary!.beat({ id: fleet.id, status: 'pending', reason: `ENOSPC\n${'x'.repeat(180)}` })
  const listOffered = async () => (await fleet.clusters({ status: 'Offered' })).items
  expect(await listOffered()).toMatchObject([{ clusterId: canary!.id, reason: `ENOSPC ${'x'.repeat(113)}` }])
  await canary!.beat({ id: fleet.id, status: 'pending' })
  expect((await listOffered())[0]).not.toHaveProperty('reason')
  expect((await canary!.beat()).update).toEqual({ id: fleet.id, version, ...relay })
  await Promise.all([report(canary!, 'completed'), report(canary!, 'completed')].map((each) => each.catch(() => {})))
  expect((await canary!.beat()).update).toBeUndefined()
  await Promise.all([sweep(), sweep(), sweep()])
  expect(await readCounts(fleet)).toEqual({ pending: 2, offered: 2, completed: 1, rolledBack: 0, skipped: 0 })
  for (const _ of [1, 2]) {
    for (const site of await offered(onlineSites)) await report(site, 'completed')
    await sweep()
  }
  expect(await fleet.read()).toMatchObject({ status: 'Running', counts: { completed: 4, offered: 0, pending: 1 } })
  await offlineSite.beat()
  await offlineSite.beat()
  await sweep()
  expect(await report(offlineSite, 'skipped')).not.toHaveProperty('update', expect.anything())
  await sweep()
  expect(await fleet.read()).toMatchObject({ status: 'Completed', counts: { completed: 4, skipped: 1 } })
  const skippedCluster = { clusterId: offlineSite.id, name: offlineSite.name, status: 'Skipped', reason: 'exit 4' }
  expect((await fleet.clusters({ status: 'Skipped' })).items).toEqual([skippedCluster])
  expect(await fleet.readRecord()).not.toHaveProperty('duesk')
  await runProjections(caller)
  const actions = (await readAuditEntries(caller)).map(({ action }) => action)
  expect(actions).toEqual(expect.arrayContaining(['relay_update.create', 'relay_update.complete']))
})

test.each<[string, number, string[], RegExp | undefined]>([
  ['a canary rolls back', 3, ['rolledBack'], /before the canaries.*: site .*exit 4/],
  ['1 of 20 relays rolls back', 20, ['completed', 'rolledBack'], undefined],
  [
    '2 of 20 relays roll back',
    20,
    ['completed', 'rolledBack', 'rolledBack'],
    /more than 5 % of 20 relays: site .*, site/,
  ],
  ['1 of 19 relays rolls back', 19, ['completed', 'rolledBack'], /more than 5 % of 19 relays/],
])(
  'the update stops only beyond the limit of rollbacks, and withdraws its offers: %s',
  async (_, size, results, reason) => {
    const fleet = await newFleet(size)
    for (const result of results) {
      await fleet.sweep()
      await fleet.report((await fleet.offered())[0]!, result as 'completed')
    }
    await fleet.sweep()
    const { status, statusReason } = await fleet.read()
    expect([status, statusReason]).toEqual(reason ? ['Stopped', expect.stringMatching(reason)] : ['Running', undefined])
    if (reason === undefined) return
    expect(await fleet.offered()).toEqual([])
    await runProjections(fleet.caller)
    const { items } = await listNotifications(fleet.caller)
    expect(items.filter(({ type }) => type === 'RelayUpdateStopped')).toMatchObject([{ body: statusReason }])
  },
  60_000,
)

test.each<[string, (caller: Caller) => Promise<unknown>, RegExp]>([
  [
    'its creator loses the permission',
    ({ organisationId, userId }) => change(keys.user(organisationId, userId), { set: { roles: ['Viewer'] } }),
    /clusters:admin/,
  ],
  [
    'the platform is updated',
    () => storeUpdateState({ version, relay: { ...relay, sha256: 'b'.repeat(64) } }),
    /now runs/,
  ],
])('the update stops when %s', async (_, event, reason) => {
  const fleet = await newFleet(2)
  await fleet.sweep()
  await event(fleet.caller)
  await fleet.sweep()
  expect(await fleet.readRecord()).toMatchObject({ status: 'Stopped', statusReason: expect.stringMatching(reason) })
  expect(await fleet.offered()).toEqual([])
})

test('no relay receives an offer after a cancellation, which a late report, a repeat and a sweep do not change', async () => {
  const fleet = await newFleet(3, { canary: 2 })
  const { caller, id } = fleet
  await fleet.sweep()
  const [first, second] = await fleet.offered()
  // A heartbeat that read the offer before the cancellation must not return the offer afterwards.
  runBefore(/^(?:Update|TransactWrite)/, () => Update.cancel(caller, id))
  expect((await first!.beat()).update).toBeUndefined()
  await fleet.report(second!, 'rolledBack')
  expect(await Update.cancel(caller, id)).toMatchObject({ status: 'Cancelled' })
  await fleet.sweep()
  expect(await fleet.offered()).toEqual([])
  expect(await fleet.read()).toMatchObject({ status: 'Cancelled', counts: { offered: 2, rolledBack: 0 } })
  await expectError(Update.cancel(await newCaller(), id), 'relay_update_not_found')
})

test('a cancellation that is interrupted fails until its offers are withdrawn, by a repeat or the sweep, and an offer cannot follow it', async () => {
  const fleet = await newFleet(2)
  runBefore(/^TransactWrite/, () => Update.cancel(fleet.caller, fleet.id))
  await fleet.sweep()
  expect(await readCounts(fleet)).toMatchObject({ pending: 2, offered: 0 })

  const otherFleet = await newFleet(2)
  await otherFleet.sweep()
  {
    using _ = failCommands(/^Query/)
    await expect(Update.cancel(otherFleet.caller, otherFleet.id)).rejects.toThrow(RangeError)
  }
  runBefore(/^TransactWrite/, async () => advanceClock(11_000))
  await expectError(Update.cancel(otherFleet.caller, otherFleet.id), 'conflict')
  expect(await Update.cancel(otherFleet.caller, otherFleet.id)).toMatchObject({ status: 'Cancelled' })
  const members = await get(keys.relayUpdateMembers(otherFleet.caller.organisationId, otherFleet.id, 0))
  expect(members).toHaveProperty('ttl', expect.any(Number))
  await otherFleet.sweep()
  expect(await otherFleet.offered()).toEqual([])
  expect(await otherFleet.readRecord()).toMatchObject({ status: 'Cancelled' })
})

test('removed clusters are skipped, and a relay that enrolls again is offered the version again', async () => {
  const fleet = await newFleet(3, { canary: 2 })
  await fleet.sweep()
  const [removedSite, replacedSite] = await fleet.offered()
  await Cluster.remove(fleet.caller, removedSite!.id)
  const relayOfSite = await replacedSite!.rejoin()
  expect((await relayOfSite.beat()).update).toBeUndefined()
  await fleet.sweep()
  expect(await readCounts(fleet)).toMatchObject({ pending: 0, offered: 2, skipped: 1 })
  await fleet.report(relayOfSite, 'completed')
  const waitingSite = fleet.sites.find(({ id }) => id !== removedSite!.id && id !== replacedSite!.id)
  await Cluster.remove(fleet.caller, waitingSite!.id)
  await fleet.sweep()
  expect(await fleet.readRecord()).toMatchObject({ status: 'Completed' })
})

test('relays with the version are skipped, one update runs at a time, and a heartbeat takes no further call', async () => {
  const caller = await newCaller()
  const sites = [await newSite(caller, '0.9.0'), await newSite(caller), await newSite(caller, version)]
  const idleCalls = await countStoreCalls(() => sites[1]!.beat())
  const allClusters = { target: { all: true as const } }
  const outcomes = await Promise.allSettled([Update.create(caller, allClusters), Update.create(caller, allClusters)])
  const createdUpdates = outcomes.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
  expect(createdUpdates).toMatchObject([{ counts: { pending: 1, skipped: 2 }, canary: 1, maxConcurrent: 50 }])
  await advance(parseRelayUpdate((await get(keys.relayUpdate(caller.organisationId, createdUpdates[0]!.id))) ?? {}))
  expect(await countStoreCalls(() => sites[1]!.beat({ id: createdUpdates[0]!.id, status: 'completed' }))).toBe(
    idleCalls,
  )
  expect((await errorOf(Update.create(caller, allClusters))).message).toContain(createdUpdates[0]!.id)
  expect(await Update.list(caller, { page: 1, pageSize: 5 })).toMatchObject({
    totalCount: 1,
    items: [{ status: 'Running' }],
  })
})

test('pages of clusters contain each once, by status too, while their states change, and cost three calls', async () => {
  const fleet = await newFleet(5, { canary: 3 })
  const ids: string[] = []
  let cursor: string | undefined
  do {
    const page = await fleet.clusters({ pageSize: 2, ...(cursor !== undefined && { cursor }) })
    expect(page.totalCount).toBe(5)
    ids.push(...page.items.map(({ clusterId }) => clusterId))
    cursor = page.nextCursor
    await fleet.sweep()
  } while (cursor !== undefined)
  expect(ids).toEqual(fleet.sites.map(({ id }) => id).toReversed())
  const offeredPage = await fleet.clusters({ status: 'Offered', pageSize: 2 })
  expect(offeredPage).toMatchObject({ totalCount: 3, items: ids.slice(0, 2).map((clusterId) => ({ clusterId })) })
  const next = { status: 'Offered', cursor: offeredPage.nextCursor }
  expect((await fleet.clusters(next)).items).toMatchObject([{ clusterId: ids[2], status: 'Offered' }])
  expect(await countStoreCalls(() => fleet.clusters(next))).toBe(3)
  for (const query of [{ ...next, status: 'Pending' }, { cursor: 'x' }])
    await expectError(fleet.clusters(query), 'validation_failed')
  const otherCaller = await newCaller()
  await expectError(Update.listClusters(otherCaller, fleet.id, { page: 1, pageSize: 9 }), 'relay_update_not_found')
})

test('the creations of an organisation are limited per minute', async () => {
  const caller = await newCaller()
  const request = { target: { all: true as const }, expectedCount: 2 }
  // The calls may extend over two minutes.
  const codes = await Promise.all(Array.from({ length: 21 }, () => errorCodeOf(Update.create(caller, request))))
  expect(new Set(codes)).toEqual(new Set(['target_changed', 'rate_limited']))
})

test.each([
  ['no signed release', {}, 'relay_signature_missing', 'npm run release'],
  ['another version', { version: '7.0.0' }, 'version_not_available', version],
  ['another number of clusters', { expectedCount: 2 }, 'target_changed', 'expectedCount'],
] as const)('rejects an update with %s, and names the next step', async (name, request, code, text) => {
  const caller = await newCaller()
  await newSite(caller)
  if (name === 'no signed release') await storeUpdateState({ version })
  const error = await errorOf(Update.create(caller, { target: { all: true }, ...request }))
  expect([error.code, error.message]).toEqual([code, expect.stringContaining(text)])
})
