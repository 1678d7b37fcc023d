import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { BatchGetItemCommand, BatchWriteItemCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { chunk } from '@platform/core/lib/async'
import { test } from 'vitest'
import { clientSettings } from '../../packages/local/src/emulators/http/environment.ts'
import { readRuntimeFile } from '../../packages/local/src/runtime-file.ts'
import { expectStatus } from '../conformance/support/answer.ts'
import type { PlatformProcess } from '../support/platform.ts'
import { waitFor } from '../support/wait-for.ts'
import { type Load, startLoad } from './load/load.ts'
import { verifyLoad } from './load/verify.ts'
import { scan } from './scan.ts'
import { claimAll, claimAtMost, claimNone } from './support/claims.ts'
import { storeFaultsOf } from './support/emulators.ts'
import { amount, isShort, print, seed } from './support/run.ts'

const faultSettings = {
  throttleRate: 0.05,
  lostAcknowledgementRate: 0.01,
  hangRate: 0.002,
  unprocessedRate: 0.05,
  transactionConflictRate: 0.02,
}

/** Memory grows while code is compiled and caches fill, so the warm-up is not measured. */
const [warmUpMinutes, measuredMinutes] = [10, 10]
const sampleIntervalMs = 5000

/** File descriptors of threads and connections that a process opens on demand. */
const descriptorTolerance = 32

interface Sample {
  minutes: number
  /** Anonymous resident memory: without pages of files. */
  residentMB: number
  descriptors: number
  loopDelayMs: number
}

async function takeSample({ url, dataDir }: PlatformProcess, startMs: number): Promise<Sample> {
  const { processId } = await readRuntimeFile(dataDir)
  const metrics = await (await fetch(`${url}/metrics`)).text()
  const value = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1])
  const status = await readFile(`/proc/${processId}/status`, 'utf8')
  return {
    minutes: (performance.now() - startMs) / 60_000,
    residentMB: Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024,
    descriptors: (await readdir(`/proc/${processId}/fd`)).length,
    loopDelayMs: 1000 * value('nodejs_eventloop_lag_p99_seconds'),
  }
}

/**
 * Returns the growth per minute between the medians of the first and the last third, which is robust against outliers.
 */
function growthOf(samples: readonly Sample[], field: 'residentMB' | 'descriptors'): number {
  const third = Math.ceil(samples.length / 3)
  const median = (part: readonly Sample[], key: keyof Sample): number =>
    part.map((each) => each[key]).toSorted((a, b) => a - b)[Math.floor(part.length / 2)] ?? 0
  const difference = (key: keyof Sample) => median(samples.slice(-third), key) - median(samples.slice(0, third), key)
  return difference(field) / difference('minutes')
}

/** Writes and reads more data than the embedded store caches (64 MB), so that later growth is not its cache. */
async function fillCaches({ dataDir }: PlatformProcess): Promise<void> {
  const { dynamoDbUrl, accessKeyId, table } = await readRuntimeFile(dataDir)
  const client = new DynamoDBClient(clientSettings(dynamoDbUrl, accessKeyId))
  const allKeys = Array.from({ length: 24_000 }, (_, index) => ({ pk: { S: `SOAK#${index}` }, sk: { S: '-' } }))
  const compressible = () => randomBytes(20).toString('hex').repeat(100)
  for (const group of chunk(allKeys, 25)) {
    const puts = group.map((key) => ({ PutRequest: { Item: { ...key, data: { S: compressible() } } } }))
    await client.send(new BatchWriteItemCommand({ RequestItems: { [table]: puts } }))
  }
  for (const Keys of chunk(allKeys, 25))
    await client.send(new BatchGetItemCommand({ RequestItems: { [table]: { Keys } } }))
  client.destroy()
}

const faultLines =
  /Throughput|Throttling|TimeoutError|ECONNRESET|EPIPE|socket hang up|TransactionConflict|TransactionCanceled|database_unavailable|did not respond|Too many concurrent changes/

const unexplainedErrors = (log: string): string[] =>
  log
    .split('\n')
    .filter((line) => /"level":"error"|^\s+at |unhandled|uncaught|MaxListeners/i.test(line) && !faultLines.test(line))

async function readPendingRecords(platform: PlatformProcess): Promise<string[]> {
  const items = (await scan(platform)).filter(({ pk }) => pk?.S?.endsWith('#OUTBOX'))
  return items.map((item) => `${item['pk']?.S} ${item['sk']?.S}`)
}

test('memory, descriptors and latency stay constant under load, and an idle platform has no pending work', async () => {
  await using load = await startLoad({ userCount: amount(4, 2), pauseMs: amount(400, 0) })
  const { platform, stats } = load
  if (!isShort) await Promise.all([load.begin()(), fillCaches(platform)])
  const startMs = performance.now()
  const baseline = await takeSample(platform, startMs)
  const faults = await storeFaultsOf(platform)
  await faults.set({ ...faultSettings, seed })
  const stop = load.begin()
  const samples: Sample[] = []
  const endMs = startMs + amount((warmUpMinutes + measuredMinutes) * 60_000, 3000)
  while (performance.now() < endMs) {
    await delay(amount(sampleIntervalMs, 1000))
    samples.push(await takeSample(platform, startMs))
    if (samples.length % 12 === 0) print(`${stats.calls} calls, ${JSON.stringify(samples.at(-1))}`)
  }
  await stop()
  await faults.clear()
  const { lost, duplicates } = await verifyLoad(load)
  const measuredSamples = samples.filter(({ minutes }) => minutes >= warmUpMinutes)
  if (!isShort) {
    claimAtMost('growth of resident memory', growthOf(measuredSamples, 'residentMB'), 1, ' MB a minute')
    claimAtMost('growth of open files and sockets', growthOf(measuredSamples, 'descriptors'), 1, ' a minute')
    const delays = measuredSamples.map(({ loopDelayMs }) => loopDelayMs)
    claimAtMost('event loop delay (99th percentile)', Math.max(...delays), 250, ' ms')
  }
  const failures = [...stats.serverErrors, ...stats.violations, ...stats.unexpected, ...stats.abandoned]
  claimNone('failed calls', failures, stats.calls)
  claimNone('lost or repeated effects', [...lost, ...duplicates])
  claimNone('unexplained errors in the log', unexplainedErrors(platform.text))
  await claimIdle(load, baseline)
})

async function claimIdle({ platform, api, relay, targets }: Load, baseline: Sample): Promise<void> {
  const admin = await api.admin
  await relay.kill()
  for (const status of ['Running', 'Queued'])
    claimNone(`jobs ${status}`, expectStatus(await admin.get(`/api/v1/jobs?status=${status}`), 200).totalCount)
  const removals = [targets.connectedId, targets.disconnectedId].map((id) => admin.delete(`/api/v1/clusters/${id}`))
  const successfulRemovals = (await Promise.all(removals)).filter(({ status }) => status === 204)
  claimAll('clusters that can be removed', successfulRemovals.length, 2)
  const isIdle = ({ descriptors }: Sample) => descriptors - baseline.descriptors <= descriptorTolerance
  let last = baseline
  await waitFor('the process is idle', async () => isIdle((last = await takeSample(platform, 0))), 90).catch(
    () => undefined,
  )
  claimAtMost('additional files and sockets', Math.max(0, last.descriptors - baseline.descriptors), descriptorTolerance)
  let pending = await readPendingRecords(platform)
  const isProcessed = async () => {
    const current = await readPendingRecords(platform)
    pending = pending.filter((record) => current.includes(record))
    return pending.length === 0
  }
  await waitFor('the outbox is processed', isProcessed, 120).catch(() => undefined)
  claimNone('outbox records that stay unprocessed', pending)
}
