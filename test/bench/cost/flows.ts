import { setTimeout as delay } from 'node:timers/promises'
import { now, shiftClock } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { recordChannelEvent } from '@platform/core/relays/channel-presence'
import { onSchedule } from '@platform/http/schedule'
import { supervise } from '@platform/worker/modules/supervise'
import type { ModuleRuntime } from '@platform/worker/runtimes/port'
import { newCaller, enrolledCluster } from '../../support/fixtures.ts'
import { jsonRequest } from '../../support/request.ts'
import {
  administrator,
  type BenchRelay,
  batchRequest,
  changeRequest,
  claimingHeartbeat,
  claimRequest,
  completeRequest,
  completeWithOutput,
  enrollRelay,
  getRequest,
  heartbeatRequest,
  jobRequest,
  outputRequest,
  registerRequest,
  relayRequest,
  reportWithOutput,
  sampleScript,
} from '../support/requests.ts'
import { range } from '../support/statistics.ts'
import { handlerFor, type Tenant } from '../support/tenant.ts'
import { Recorder } from './recorder.ts'

/**
 * Flows whose costs `npm run cost` prints: actions of users, relays and schedules, including the messages that follow.
 */

/** Size of the measured batch. */
export const batchJobs = 100
const pageSize = 20
const silentClusters = 20
const heartbeatMs = config.PLAT_HEARTBEAT_INTERVAL_SECONDS * 1000
const channelHeartbeatMs = config.PLAT_CHANNEL_HEARTBEAT_SECONDS * 1000
const offlineMs = 600_000
/**
 * Time between two sweeps: too short to count as downtime of the platform, but after two such pauses, a silent cluster
 * is Offline and due for a check.
 */
const sweepPauseMs = 70_000
const checksPerSweep = 5
/** After these heartbeats, the list of recent tokens in the cluster record no longer grows. */
const warmUpHeartbeats = 20
/** Longer than the delay of messages about submitted jobs and about claims of single jobs. */
const longDelayMs = 2500
/** Longer than the delay of messages about claims and ends of listed jobs of batches. */
const recordingDelayMs = 1500
/** Longer than the delay of messages that changes share. */
const sharedDelayMs = 1500
/** Sweeps that finish the work of the setup. */
const warmUpSweeps = 8

export async function recordFlows(recorder: Recorder, tenant: Tenant, webhookHost: string): Promise<void> {
  await recorder.deliverMessages()
  await recordSchedules(recorder)
  for (const _ of range(pageSize)) {
    await recorder.request('clusters', registerRequest(tenant.accessToken))
    await recorder.deliverMessages()
  }
  await recordUserFlows(recorder, tenant)
  await recordIdleRelay(recorder, tenant)
  await recordWebhook(recorder, tenant, webhookHost)
}

export async function newRecordedRelay(recorder: Recorder, accessToken: string): Promise<BenchRelay> {
  const relay = await enrollRelay((name, request) => recorder.request(name, request), accessToken)
  await recorder.deliverMessages()
  return relay
}

async function recordUserFlows(recorder: Recorder, { accessToken }: Tenant): Promise<void> {
  const { clusterId } = await newRecordedRelay(recorder, accessToken)
  const read = (target: string) => recorder.request('clusters', getRequest(target, accessToken))
  const path = `/api/v1/clusters/${clusterId}`
  const signIn = async () => {
    const { refreshToken } = await recorder.request('auth', jsonRequest('/api/v1/auth/login', administrator))
    await recorder.deliverMessages()
    return refreshToken
  }
  const refreshToken = await signIn()
  const refresh = jsonRequest('/api/v1/auth/refresh', { refreshToken })
  await read(path)
  await recorder.measure('GET cluster', () => read(path))
  await recorder.measure(`list clusters, a page of ${pageSize}`, () => read(`/api/v1/clusters?pageSize=${pageSize}`))
  await recorder.measure('sign in', signIn)
  await recorder.measure('refresh a session', () => recorder.request('auth', refresh))
  await recorder.measure('a change (PATCH cluster)', () => rename(recorder, clusterId, accessToken))
  await recorder.measure('a change of labels', () => changeLabels(recorder, clusterId, accessToken))
  await recorder.measure('a cluster, registered and enrolled', () => newRecordedRelay(recorder, accessToken))
}

async function rename(recorder: Recorder, clusterId: string, accessToken: string): Promise<void> {
  const body = { name: `renamed-${crypto.randomUUID().slice(0, 8)}` }
  await recorder.request('clusters', changeRequest('PATCH', `/api/v1/clusters/${clusterId}`, accessToken, body))
  await recorder.deliverMessages()
}

async function changeLabels(recorder: Recorder, clusterId: string, accessToken: string): Promise<void> {
  const labels = { [`label-${crypto.randomUUID().slice(0, 8)}`]: 'value' }
  const request = changeRequest('PATCH', `/api/v1/clusters/${clusterId}`, accessToken, { labels })
  await recorder.request('clusters', request)
  await recorder.deliverMessages()
}

async function recordIdleRelay(recorder: Recorder, { accessToken }: Tenant): Promise<void> {
  const relay = await newRecordedRelay(recorder, accessToken)
  const heartbeats = async (count: number, intervalMs: number, channel?: 'open') => {
    for (const _ of range(count)) {
      shiftClock(intervalMs)
      await recorder.request('relay', await heartbeatRequest(relay, { channel }))
    }
  }
  const heartbeatsPerHour = 3_600_000 / heartbeatMs
  await heartbeats(warmUpHeartbeats, heartbeatMs)
  await recorder.measure('an hour of an idle relay without a channel', () => heartbeats(heartbeatsPerHour, heartbeatMs))
  const channel = { relayId: relay.relayId, clientId: relay.relayId, session: 'one', version: 1, isOpen: true }
  await recordChannelEvent({ ...channel, atMs: now() })
  const perHourWithChannel = 3_600_000 / channelHeartbeatMs
  await recorder.measure('an hour of an idle relay', () => heartbeats(perHourWithChannel, channelHeartbeatMs, 'open'))
  shiftClock(-heartbeatMs * (warmUpHeartbeats + heartbeatsPerHour) - channelHeartbeatMs * perHourWithChannel)
}

async function recordWebhook(recorder: Recorder, { accessToken }: Tenant, host: string): Promise<void> {
  const { clusterId } = await newRecordedRelay(recorder, accessToken)
  const body = { url: `http://${host}/hook`, events: ['*'] }
  const { id } = await recorder.request('webhooks', changeRequest('POST', '/api/v1/webhooks', accessToken, body))
  await recorder.deliverMessages()
  await rename(recorder, clusterId, accessToken)
  await recorder.measure('a change with one webhook', () => rename(recorder, clusterId, accessToken))
  await recorder.request('webhooks', changeRequest('DELETE', `/api/v1/webhooks/${id}`, accessToken))
  await recorder.deliverMessages()
}

export async function measureJobs(recorder: Recorder, { accessToken }: Tenant): Promise<readonly BenchRelay[]> {
  const relay = await newRecordedRelay(recorder, accessToken)
  await runJob(new Recorder(), accessToken, relay)
  const jobId = await runJobByCalls(recorder, accessToken, relay)
  // The messages about earlier jobs must not count.
  await delay(longDelayMs)
  await recorder.deliverMessages()
  await recorder.measure('a single job', () => runJob(recorder, accessToken, relay))
  const poll = getRequest(`/api/v1/jobs/${jobId}`, accessToken)
  await recorder.request('jobs', poll)
  await recorder.measure('GET job', () => recorder.request('jobs', poll))
  const goodbye = await relayRequest(relay, '/api/v1/relay/goodbye', { reason: 'done' })
  await recorder.request('relay', goodbye, 'POST /relay/goodbye')
  const relays: BenchRelay[] = []
  while (relays.length < batchJobs) relays.push(await newRecordedRelay(recorder, accessToken))
  await recorder.measure('a job of a batch', () => runBatch(recorder, accessToken, relays), batchJobs)
  return relays
}

/** Records jobs that run for more than a second, and jobs whose results share a request. */
export async function recordLongJobs(
  recorder: Recorder,
  { accessToken }: Tenant,
  relays: readonly BenchRelay[],
): Promise<void> {
  const runLongBatch = () => runBatch(recorder, accessToken, relays, recordingDelayMs)
  await recorder.measure('a job of a batch, longer than a second', runLongBatch, relays.length)
  const [relay] = relays
  if (relay !== undefined) await runTogether(recorder, accessToken, relay)
}

/** Runs three jobs for a relay that reports their results together. */
async function runTogether(recorder: Recorder, accessToken: string, relay: BenchRelay): Promise<void> {
  for (const _ of range(3)) await recorder.request('jobs', jobRequest(accessToken, relay.clusterId, sampleScript))
  await recorder.deliverMessages()
  const { claims } = await recorder.request('relay', await claimingHeartbeat(relay))
  const completions = claims.map(({ jobId, leaseId }: ClaimedJob) => ({ jobId, ...reportWithOutput(relay, leaseId) }))
  const request = await relayRequest(relay, '/api/v1/relay/completions', { completions })
  await recorder.request('relay', request, 'POST /relay/completions, with three results')
  await recorder.deliverMessages()
}

/** Runs a job for a relay that claims each job with a separate call. */
async function runJobByCalls(recorder: Recorder, accessToken: string, relay: BenchRelay): Promise<string> {
  const { id } = await recorder.request('jobs', jobRequest(accessToken, relay.clusterId, sampleScript))
  await recorder.deliverMessages()
  await recorder.request('relay', await heartbeatRequest(relay), 'POST /relay/heartbeat, with a job')
  const request = await claimRequest(relay, id)
  const { leaseId } = await recorder.request('relay', request, 'POST /relay/jobs/{id}/claim')
  await recorder.request('relay', await heartbeatRequest(relay), 'POST /relay/heartbeat')
  await recorder.request('relay', await outputRequest(relay, id, leaseId), 'POST /relay/jobs/{id}/output')
  await recorder.request('relay', await completeRequest(relay, id, leaseId), 'POST /relay/jobs/{id}/complete')
  await recorder.deliverMessages()
  return id
}

async function runJob(recorder: Recorder, accessToken: string, relay: BenchRelay): Promise<void> {
  await recorder.request('jobs', jobRequest(accessToken, relay.clusterId, sampleScript))
  await recorder.deliverMessages()
  const job = await claim(recorder, relay)
  await complete(recorder, job)
  await recorder.deliverMessages()
  await delay(longDelayMs)
  await recorder.deliverMessages()
}

/**
 * Each job ends at once, or all jobs run for the given time. Messages are delivered after all relays have claimed or
 * reported their jobs, so that consumers receive full batches of messages.
 */
async function runBatch(
  recorder: Recorder,
  accessToken: string,
  relays: readonly BenchRelay[],
  durationMs = 0,
): Promise<void> {
  const clusterIds = relays.map(({ clusterId }) => clusterId)
  await recorder.request('jobs', batchRequest(accessToken, clusterIds), 'POST /jobs/batch, full')
  await recorder.deliverMessages()
  const runningJobs: ClaimedJob[] = []
  for (const relay of relays) {
    const job = await claim(recorder, relay)
    if (durationMs > 0) runningJobs.push(job)
    else await complete(recorder, job)
  }
  if (durationMs > 0) {
    await delay(durationMs)
    await recorder.deliverMessages()
  }
  for (const job of runningJobs) await complete(recorder, job)
  for (const delayMs of [recordingDelayMs, sharedDelayMs]) {
    await delay(delayMs)
    await recorder.deliverMessages()
  }
}

type ClaimedJob = Awaited<ReturnType<typeof claim>>

async function claim(recorder: Recorder, relay: BenchRelay) {
  const request = await claimingHeartbeat(relay)
  const [job] = (await recorder.request('relay', request, 'POST /relay/heartbeat, with a claim')).claims
  return { relay, jobId: job.jobId, leaseId: job.leaseId }
}

async function complete(recorder: Recorder, { relay, jobId, leaseId }: ClaimedJob): Promise<void> {
  const completion = await completeWithOutput(relay, jobId, leaseId)
  await recorder.request('relay', completion, 'POST /relay/jobs/{id}/complete, with output')
}

const reject = async (): Promise<never> => {
  throw new Error('No module is installed.')
}
const emptyRuntime: ModuleRuntime = { deploy: reject, request: reject, remove: reject, list: async () => [] }

async function recordSchedules(recorder: Recorder): Promise<void> {
  const heartbeat = onSchedule('heartbeat', () => supervise(async () => emptyRuntime))
  const run = async (name: string) => {
    const handler = name === 'schedule/heartbeat' ? heartbeat : await handlerFor(name)
    return recorder.invoke(name, () => handler({}))
  }
  const sweepLater = async () => {
    shiftClock(offlineMs)
    await run('schedule/sweep')
  }
  for (const _ of range(warmUpSweeps)) {
    await sweepLater()
    await recorder.deliverMessages()
  }
  const checkClusters = async () => {
    const body = JSON.stringify({ organisationId: 'platform', sweep: 'clusters' })
    const handler = await handlerFor('queue/events')
    return recorder.invoke('queue/events', () => handler({ Records: [{ messageId: 'check', body }] }))
  }
  await recorder.measure('schedule/sweep', async () => {
    await sweepLater()
    for (const _ of range(checksPerSweep)) await checkClusters()
  })
  const caller = await newCaller()
  for (const _ of range(silentClusters)) {
    await enrolledCluster(caller)
    await recorder.deliverMessages()
  }
  const sweepAfterPause = async () => {
    shiftClock(sweepPauseMs)
    await run('schedule/sweep')
    await delay(sharedDelayMs)
    await recorder.deliverMessages()
  }
  await sweepAfterPause()
  await recorder.measure('a cluster that goes offline', sweepAfterPause, silentClusters)
  shiftClock(-(warmUpSweeps + 1) * offlineMs - 2 * sweepPauseMs)
  await run('schedule/catalog')
  const schedules = ['heartbeat', 'catalog', 'updates', 'write-check', 'checkpoints']
  for (const name of schedules.map((each) => `schedule/${each}`)) {
    await recorder.measure(name, () => run(name))
  }
}
