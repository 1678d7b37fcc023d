import { setTimeout as delay } from 'node:timers/promises'
import { join } from 'node:path'
import { buildFunctions } from '../../scripts/deploy/build.ts'
import { buildRelay } from '../../scripts/build-relay.ts'
import { setupRequest } from '../support/platform.ts'
import { Program } from '../support/program.ts'
import { jsonRequest } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { startSimulator } from '../simulator/simulator.ts'
import { withoutRateLimits } from './support/emulators.ts'
import { fetchJson } from './support/requests.ts'
import { atMost, type Effort, type Section, asTarget } from './support/section.ts'
import { range } from './support/statistics.ts'

/** Time limit of a check: longer than two heartbeat intervals, the longest latency without a control channel. */
const limitMs = 90_000
const script = { type: 'InvokeScript', payload: { script: 'true' } }

/** Starts the deployed configuration on this machine, with its default intervals and a real relay. */
async function startDeployment(stack: AsyncDisposableStack) {
  const { path: folder } = stack.use(await temporaryFolder())
  const functionsDir = join(folder, 'functions')
  const relayFile = join(folder, 'relay.mjs')
  await Promise.all([buildFunctions(functionsDir), buildRelay(relayFile)])
  const [environment, ignore] = [{ ...withoutRateLimits, PLAT_LOG_LEVEL: 'error' }, () => {}]
  const simulator = stack.use(
    await startSimulator({ stage: 'production', port: 0, environment, functionsDir, onOutput: ignore, log: ignore }),
  )
  const { url } = simulator
  const setup = setupRequest(await simulator.initialAdminToken())
  const { accessToken } = await fetchJson(url, jsonRequest('/api/v1/setup/complete', setup))
  const call = (path: string, body?: object): Promise<any> => {
    const headers = { authorization: `Bearer ${accessToken}` }
    return fetchJson(url, body === undefined ? { target: path, headers } : jsonRequest(path, body, headers))
  }
  const { id: clusterId, enrollmentToken } = await call('/api/v1/clusters', { name: 'bench', type: 'Hypervisor' })
  const args = [relayFile, '--server', url, '--state-dir', join(folder, 'state')]
  const env = { PATH: process.env['PATH'], PLAT_ENROLLMENT_TOKEN: enrollmentToken }
  stack.use(new Program(process.execPath, args, { cwd: folder, env }))
  return { call, clusterId }
}

type Deployment = Awaited<ReturnType<typeof startDeployment>>

async function waitUntil(isDone: () => Promise<boolean>, pauseMs: number): Promise<number> {
  const startedAtMs = performance.now()
  while (!(await isDone())) {
    if (performance.now() - startedAtMs > limitMs) throw new Error(`Not done after ${limitMs} ms.`)
    await delay(pauseMs)
  }
  return performance.now() - startedAtMs
}

async function measureCompletionMs({ call, clusterId }: Deployment): Promise<number> {
  const { id } = await call('/api/v1/jobs', { ...script, clusterId })
  return waitUntil(async () => (await call(`/api/v1/jobs/${id}`)).status === 'Completed', 50)
}

/** Polls the output of a silent job as the portal and `plat` do. Returns the number and total time of requests. */
async function watch(
  { call }: Deployment,
  jobId: string,
  untilMs: number,
): Promise<{ requests: number; busyMs: number }> {
  let [requests, busyMs, pauseMs] = [0, 0, 250]
  while (performance.now() < untilMs) {
    const startedAtMs = performance.now()
    await call(`/api/v1/jobs/${jobId}/output`)
    busyMs += performance.now() - startedAtMs
    requests++
    pauseMs = Math.min(5000, pauseMs * 1.5)
    await delay(pauseMs)
  }
  return { requests, busyMs }
}

async function measureWatchers(deployment: Deployment, seconds: number): Promise<Section> {
  const body = { type: 'InvokeScript', payload: { script: `sleep ${seconds}` }, clusterId: deployment.clusterId }
  const { id } = await deployment.call('/api/v1/jobs', body)
  const startedAtMs = performance.now()
  const watchers = range(10).map(() => watch(deployment, id, startedAtMs + seconds * 1000))
  const watcherResults = await Promise.all(watchers)
  const requests = watcherResults.reduce((sum, each) => sum + each.requests, 0)
  const meanConcurrency = watcherResults.reduce((sum, each) => sum + each.busyMs, 0) / (performance.now() - startedAtMs)
  return {
    title: 'Ten people watch a silent job',
    columns: ['seconds', 'requests', 'requests in progress, mean'],
    rows: [[seconds, requests, meanConcurrency]],
    goals: [asTarget(atMost('cloud: requests in progress for ten watchers, mean', meanConcurrency, 1))],
  }
}

const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN

export async function* measureCloudLatency({ isQuick }: Effort): AsyncGenerator<Section> {
  await using stack = new AsyncDisposableStack()
  const deployment = await startDeployment(stack)
  const { call, clusterId } = deployment
  await waitUntil(async () => (await call(`/api/v1/clusters/${clusterId}`)).status === 'Healthy', 500)
  const latenciesMs: number[] = []
  for (const _ of range(isQuick ? 5 : 20)) {
    // Lets the relay become idle, because it sends heartbeats more often after a job.
    await delay(isQuick ? 1000 : 5000)
    latenciesMs.push(await measureCompletionMs(deployment))
  }
  const sorted = latenciesMs.toSorted((a, b) => a - b)
  const [p50, p95] = [percentile(sorted, 0.5), percentile(sorted, 0.95)]
  yield {
    title: 'Deployed configuration, default settings, real relay: submission to completion of `true`',
    columns: ['jobs', 'p50 ms', 'p95 ms', 'max ms'],
    rows: [[sorted.length, p50, p95, sorted.at(-1) ?? Number.NaN]],
    goals: [asTarget(atMost('cloud: p50, ms', p50, 1000)), asTarget(atMost('cloud: p95, ms', p95, 2000))],
  }
  yield await measureWatchers(deployment, isQuick ? 20 : 60)
}
