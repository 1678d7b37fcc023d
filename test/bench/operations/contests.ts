import * as keys from '@platform/core/db/keys'
import { update } from '@platform/core/db/table'
import { issueAccessToken } from '@platform/core/signing/access-token'
import { jsonRequest, type TestRequest } from '../../support/request.ts'
import { newCaller } from '../../support/fixtures.ts'
import type { Feed } from '../paging/feed.ts'
import { type Peer, peerModule, peerNames } from '../support/peers.ts'
import { beat, type BenchRelay } from '../support/relay.ts'
import { range } from '../support/statistics.ts'
import { bearer, getting, newCluster, type Tenant } from '../support/tenant.ts'
import type { Contest } from './contest.ts'

/** As many as one round has requests: a relay beats once in a round. */
const relayCount = 50
const hourMs = 3_600_000

/** The peers' side of the operations that they serve. */
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- one entry for each name
const peers = Object.fromEntries(peerNames.map((name) => [name, peerModule(name)])) as Record<Peer, string>

/** The same requests again and again. */
const times =
  (sent: TestRequest) =>
  async (count: number): Promise<TestRequest[]> =>
    range(count).map(() => sent)

/** A cluster that is well while the bench runs, whether its relay beats or not: what is said of it does not change. */
export async function steadyCluster({ accessToken, organisationId }: Tenant): Promise<string> {
  const { clusterId } = await newCluster(accessToken)
  await update(keys.cluster(organisationId, clusterId), { set: { lastSeenAtMs: Date.now() + hourMs } })
  return clusterId
}

/** The operations that the peers serve, too. */
export async function sharedContests({ accessToken, organisationId }: Tenant, clusterId: string): Promise<Contest[]> {
  const target = `/api/v1/clusters/${clusterId}`
  const submission = { clusterId, type: 'InvokeScript', payload: { script: 'uname' } }
  const reading = { platform: 'functions/clusters.ts', floor: 'test/bench/floor/get-cluster.ts', ...peers }
  const submitting = { platform: 'functions/jobs.ts', floor: 'test/bench/floor/submit-job.ts', ...peers }
  const subject = { ...(await newCaller(organisationId)), roles: ['OrgAdmin'] }
  // No two tokens are alike: each has an id of its own.
  const withFreshTokens = (count: number) =>
    Promise.all(range(count).map(async () => getting(target, await issueAccessToken(subject))))
  return [
    { name: 'GET /clusters/{id}', sides: reading, requests: times(getting(target, accessToken)) },
    { name: 'GET /clusters/{id}, a fresh token each', sides: reading, requests: withFreshTokens },
    {
      name: 'POST /jobs',
      sides: submitting,
      requests: times(jsonRequest('/api/v1/jobs', submission, bearer(accessToken))),
    },
  ]
}

/** All operations that are measured against the floor. */
export async function contestsOf(tenant: Tenant, feeds: readonly Feed[]): Promise<Contest[]> {
  const { accessToken } = tenant
  const relays: BenchRelay[] = []
  for (const _ of range(relayCount)) relays.push((await newCluster(accessToken)).relay)
  return [
    ...(await sharedContests(tenant, await steadyCluster(tenant))),
    {
      name: 'GET /clusters',
      sides: { platform: 'functions/clusters.ts', floor: 'test/bench/floor/list-clusters.ts' },
      requests: times(getting('/api/v1/clusters', accessToken)),
    },
    {
      name: 'POST /relay/heartbeat, nothing to do',
      sides: { platform: 'functions/relay.ts', floor: 'test/bench/floor/heartbeat.ts' },
      requests: (count) => Promise.all(relays.slice(0, count).map(beat)),
    },
    ...feeds.map(readingFeed),
  ]
}

const readingFeed = ({ accessToken, count }: Feed): Contest => ({
  name: `GET /notifications, of ${count.toLocaleString('en')}`,
  sides: { platform: 'functions/notifications.ts', floor: 'test/bench/floor/list-notifications.ts' },
  requests: times(getting('/api/v1/notifications', accessToken)),
})
