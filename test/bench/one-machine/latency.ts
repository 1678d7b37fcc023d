import { jsonRequest, type TestRequest } from '../../support/request.ts'
import { inTurn, sameScript, submission } from '../batch/submissions.ts'
import { atMost, type Effort, hope, type Section } from '../support/section.ts'
import { percentile, range, spread } from '../support/statistics.ts'
import { administrator, bearer, getting, registration } from '../support/tenant.ts'
import { fire } from './autocannon.ts'
import { ask, type RunningPlatform, startRunning } from './running.ts'

const names = ['API', 'BATCH', 'SIGN_IN_USER', 'SIGN_IN_ADDRESS']
const limits = Object.fromEntries(names.map((name) => [`PLAT_LIMIT_${name}_PER_MINUTE`, '1000000']))
/** A connection sends one after another; those of a load begin together. */
const perConnection = 10
/** Who floods waits for nobody. */
const floodConnections = 10

/** Requests at a rate, and what their 99th percentile should not exceed. */
interface Load {
  name: string
  request: TestRequest
  perSecond: number
  p99Ms: number
}

interface Taken {
  p50Ms: number
  p99Ms: number
  maxMs: number
}

/** How long a platform on this machine lets callers wait, at rates that a small company has at its worst. */
export async function measureLatency({ isQuick }: Effort): Promise<Section> {
  await using platform = await startRunning({ ...limits, PLAT_LIMIT_API_BURST: '1000000' })
  const { url, accessToken } = platform
  const { id: clusterId } = await ask(url, registration(accessToken))
  const [rounds, seconds] = isQuick ? [1, 4] : [3, 6]
  const loads = loadsOf(accessToken, clusterId)
  const rows: [name: string, rate: string, taken: Taken, limitMs: number][] = []
  for (const load of loads)
    rows.push([load.name, `${load.perSecond}/s`, await take(url, load, rounds, seconds), load.p99Ms])
  rows.push([
    'POST /jobs/batch, 500 jobs',
    'one by one',
    await submitBatches(platform, clusterId, isQuick ? 5 : 40),
    2500,
  ])
  return {
    title: 'One machine: how long callers wait',
    columns: ['request', 'rate', 'p50 ms', 'p99 ms', 'max ms', 'p99 goal'],
    rows: rows.map(([name, rate, { p50Ms, p99Ms, maxMs }, limitMs]) => [name, rate, p50Ms, p99Ms, maxMs, limitMs]),
    goals: rows.map(([name, rate, { p99Ms }, limitMs]) => hope(atMost(`${name}, ${rate}: p99, ms`, p99Ms, limitMs))),
  }
}

const signIn = jsonRequest('/api/v1/auth/login', administrator)

function loadsOf(accessToken: string, clusterId: string): Load[] {
  const job = { clusterId, type: 'InvokeScript', payload: { script: 'uname' } }
  const submitting = jsonRequest('/api/v1/jobs', job, bearer(accessToken))
  return [
    {
      name: 'GET /clusters/{id}',
      request: getting(`/api/v1/clusters/${clusterId}`, accessToken),
      perSecond: 200,
      p99Ms: 50,
    },
    { name: 'POST /jobs', request: submitting, perSecond: 100, p99Ms: 100 },
    { name: 'POST /auth/login', request: signIn, perSecond: 10, p99Ms: 400 },
    { name: flooded, request: { target: '/health/live' }, perSecond: 20, p99Ms: 20 },
  ]
}

const flooded = 'GET /health/live, in a flood of sign-ins'

async function take(url: string, load: Load, rounds: number, seconds: number): Promise<Taken> {
  const all: Taken[] = []
  for (const _ of range(rounds)) {
    const measured = fire({
      ...volleyOf(url, load.request, Math.ceil(load.perSecond / perConnection)),
      seconds,
      perSecond: load.perSecond,
    })
    const flood = load.name === flooded ? [fire({ ...volleyOf(url, signIn, floodConnections), seconds })] : []
    const [{ latency }] = await Promise.all([measured, ...flood])
    all.push({ p50Ms: latency.p50, p99Ms: latency.p99, maxMs: latency.max })
  }
  const median = (name: keyof Taken) => spread(all.map((taken) => taken[name])).median
  return { p50Ms: median('p50Ms'), p99Ms: median('p99Ms'), maxMs: median('maxMs') }
}

const volleyOf = (url: string, { target, method = 'GET', headers = {}, body }: TestRequest, connections: number) => ({
  url: `${url}${target}`,
  method,
  headers,
  connections,
  ...(body !== undefined && { body: String(body) }),
})

async function submitBatches({ url, accessToken }: RunningPlatform, clusterId: string, count: number): Promise<Taken> {
  const request = submission(accessToken, inTurn([clusterId]), sameScript)
  const times: number[] = []
  for (const _ of range(count)) {
    const startedAtMs = performance.now()
    await ask(url, request)
    times.push(performance.now() - startedAtMs)
  }
  return { p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99), maxMs: percentile(times, 1) }
}
