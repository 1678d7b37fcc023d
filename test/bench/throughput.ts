import type { Call } from '@platform/relay/client'
import { Completions } from '@platform/relay/completions'
import type { RelayResponse } from '@platform/relay/http'
import { randomUUID } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { options, PlatformProcess } from '../support/platform.ts'
import { runRelayCommand } from '../support/relay-command.ts'
import { jsonRequest } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { platformDefaults } from './one-machine.ts'
import {
  batchRequest,
  batchSize,
  type BenchRelay,
  changeRequest,
  claimingHeartbeat,
  enrollRelay,
  fetchJson,
  fillBatch,
  getRequest,
  relayRequest,
  reportWithOutput,
} from './support/requests.ts'
import { atMost, type Effort, type Section, asTarget } from './support/section.ts'
import { range, spread } from './support/statistics.ts'

const limitMs = 120_000

async function waitUntil(isDone: () => Promise<boolean>, pauseMs: number): Promise<void> {
  const endMs = performance.now() + limitMs
  while (!(await isDone())) {
    if (performance.now() > endMs) throw new Error(`Not done after ${limitMs} ms.`)
    await delay(pauseMs)
  }
}

/**
 * Runs a batch of jobs whose script is `true`. The time starts with the creation of the batch and ends with the last
 * completion.
 */
async function completionsPerSecond(url: string, accessToken: string, clusterIds: readonly string[]): Promise<number> {
  const submission = batchRequest(accessToken, fillBatch(clusterIds), () => 'true')
  const { batchId } = await fetchJson(url, submission)
  const read = getRequest(`/api/v1/jobs/batch/${batchId}`, accessToken)
  await waitUntil(async () => (await fetchJson(url, read)).counts.completed === batchSize, 250)
  const { createdAt } = await fetchJson(url, read)
  const [lastCompletion = ''] = (await readCompletionTimes(url, accessToken, batchId)).toSorted().toReversed()
  return (batchSize * 1000) / (Date.parse(lastCompletion) - Date.parse(createdAt))
}

async function readCompletionTimes(url: string, accessToken: string, batchId: string): Promise<string[]> {
  const times: string[] = []
  for (let cursor = ''; ;) {
    const path = `/api/v1/jobs?batchId=${batchId}&pageSize=100${cursor && `&cursor=${cursor}`}`
    const page = await fetchJson(url, getRequest(path, accessToken))
    times.push(...page.items.map(({ completedAt }: { completedAt: string }) => completedAt))
    if (page.nextCursor == null) return times
    cursor = page.nextCursor
  }
}

/** Claims and completes jobs over HTTP until the signal aborts, like a relay whose scripts take no time. */
async function simulateRelay(url: string, relay: BenchRelay, signal: AbortSignal): Promise<void> {
  const attempt = async ({ path, body = {} }: Call): Promise<RelayResponse> => {
    const answer = await fetchJson(url, await relayRequest(relay, `/api/v1/relay${path}`, body))
    return { status: 200, headers: {}, body: answer }
  }
  const completions = new Completions({ attempt, deliver: attempt }, signal)
  while (!signal.aborted) {
    const { claims } = await fetchJson(url, await claimingHeartbeat(relay, randomUUID()))
    if (claims.length === 0) await delay(100)
    await Promise.all(
      claims.map(({ jobId, leaseId }: { jobId: string; leaseId: string }) =>
        completions.report(jobId, reportWithOutput(relay, leaseId)),
      ),
    )
  }
}

export async function* measureThroughput({ isQuick }: Effort): AsyncGenerator<Section> {
  await using stack = new AsyncDisposableStack()
  const platform = stack.use(await PlatformProcess.start(platformDefaults))
  const { url } = platform
  await platform.setUp()
  const { accessToken } = await fetchJson(url, jsonRequest('/api/v1/auth/login', options))
  const rounds = range(isQuick ? 2 : 5)
  const measure = async (clusterIds: readonly string[]) => {
    const speeds: number[] = []
    for (const _ of rounds) speeds.push(await completionsPerSecond(url, accessToken, clusterIds))
    return spread(speeds)
  }

  const realClusterIds: string[] = []
  {
    await using relays = new AsyncDisposableStack()
    const { path: folder } = relays.use(await temporaryFolder())
    for (const name of range(4).map((index) => `real-${index}`)) {
      const body = { name, type: 'Hypervisor' }
      const cluster = await fetchJson(url, changeRequest('POST', '/api/v1/clusters', accessToken, body))
      const home = join(folder, name)
      await mkdir(home)
      relays.use(runRelayCommand(cluster.relayCommand, home))
      realClusterIds.push(cluster.id)
    }
    for (const id of realClusterIds) {
      const read = getRequest(`/api/v1/clusters/${id}`, accessToken)
      await waitUntil(async () => (await fetchJson(url, read)).status === 'Healthy', 250)
    }
    yield section('four real relays', await measure(realClusterIds), 120)
  }

  const simulatedRelays = await Promise.all(
    range(10).map(() => enrollRelay((_name, request) => fetchJson(url, request), accessToken)),
  )
  const end = new AbortController()
  const running = simulatedRelays.map((relay) => simulateRelay(url, relay, end.signal))
  const speed = await Promise.race([measure(simulatedRelays.map(({ clusterId }) => clusterId)), Promise.all(running)])
  end.abort()
  await Promise.all(running)
  if (!Array.isArray(speed)) yield section('ten simulated relays', speed, 300)
}

const section = (
  relays: string,
  { median, min, max }: ReturnType<typeof spread>,
  jobsPerSecondGoal: number,
): Section => ({
  title: `One machine: batch of ${batchSize} × true, ${relays}, on the same machine`,
  columns: ['jobs/s', 'min', 'max'],
  rows: [[median, min, max]],
  goals: [asTarget(atMost(`${relays}: ms per job`, 1000 / median, 1000 / jobsPerSecondGoal))],
})
