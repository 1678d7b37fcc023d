import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import { jobFor } from '../conformance/support/batch.ts'
import { startServer } from '../support/http-server.ts'
import { runRelayCommand } from '../support/relay-command.ts'
import { setSystemClock } from '../support/system-clock.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { waitFor } from '../support/wait-for.ts'
import { type Load, startLoad } from './load/load.ts'
import { verifyLoad } from './load/verify.ts'
import { claimAtMost, claimNone } from './support/claims.ts'
import { amount, print } from './support/run.ts'

const [minute, day] = [60_000, 86_400_000]
/** Differences from the real time in milliseconds, one after the other. */
const differences = amount([-30 * minute, 0, 30 * minute, 0, -day, 0, day, 0], [-day, 0])
const pauseMs = amount(50_000, 0)
const scriptSeconds = amount(60, 15)

/** Actions whose caller has its own clock, or that wait for a delivery timeout. */
const omittedActions = ['completeAsRelay', 'submitUndeliverable']

/** Starts a webhook receiver that rejects some requests, so that retries wait while the clock changes. */
async function startReceiver() {
  let count = 0
  const server = await startServer(() => ({ status: ++count % 25 === 0 ? 503 : 204 }))
  const receivedJobIds = () => new Set(server.requests.map(({ body }) => JSON.parse(body.toString()).data.jobId))
  return {
    jobIds: receivedJobIds,
    host: server.host,
    url: server.url,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

async function signIn({ api }: Load): Promise<Client> {
  const client = api.anonymous.withToken((await api.signIn()).accessToken)
  expectStatus(await client.get('/api/v1/auth/me'), 200)
  return client
}

/** Submits a job whose script runs while the clock changes. */
async function submitLongScript(client: Client, { targets, acknowledged }: Load): Promise<void> {
  const line = `long ${randomUUID()}`
  const script = `sleep ${scriptSeconds}; echo '${line}' >>'${targets.ledger}'; echo '${line}'`
  const job = await client.post('/api/v1/jobs', jobFor(targets.connectedId, script))
  acknowledged.executed.set(line, expectStatus(job, 202).id)
}

/** Returns the seconds until the check succeeds. Stops waiting after two minutes. */
async function secondsUntil(description: string, check: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now()
  await waitFor(description, async () => Boolean(await check().catch(() => false)), 120).catch(() => undefined)
  return (performance.now() - startedMs) / 1000
}

/**
 * Starts a long script, kills another relay and changes the clock. Returns the seconds until a sign-in succeeds, and
 * then until the silent cluster is Offline.
 */
async function changeClock(load: Load, folder: string, setClock: () => void) {
  const clientBefore = await signIn(load)
  const registration = { name: `silent ${randomUUID()}`, type: 'Hypervisor' }
  const cluster = expectStatus(await clientBefore.post('/api/v1/clusters', registration), 201)
  await using relay = runRelayCommand(cluster.relayCommand, folder)
  await relay.writes(/Connected/)
  await submitLongScript(clientBefore, load)
  await delay(2000)
  await relay.kill()
  setClock()
  const signInSeconds = await secondsUntil('a sign-in', () => signIn(load))
  const clientAfter = await signIn(load)
  const detectionSeconds = await secondsUntil('the silent cluster is Offline', async () => {
    return expectStatus(await clientAfter.get(`/api/v1/clusters/${cluster.id}`), 200).status === 'Offline'
  })
  return { signInSeconds, detectionSeconds }
}

test('nothing is lost, repeated or locked out when the clock changes by 30 minutes or a day', async () => {
  await using folder = await temporaryFolder()
  const clockFile = join(folder.path, 'clock')
  setSystemClock(clockFile, 0)
  await using receiver = await startReceiver()
  const settings = { PLAT_WEBHOOK_ALLOW: receiver.host }
  await using load = await startLoad({
    userCount: 2,
    pauseMs: amount(500, 200),
    settings,
    clockFile,
    omitted: omittedActions,
  })
  const { stats, acknowledged } = load
  const webhook = { url: receiver.url, events: ['platform.job.completed'] }
  expectStatus(await (await signIn(load)).post('/api/v1/webhooks', webhook), 201)
  const stop = load.begin()
  let [servedSeconds, detectedSeconds] = [0, 0]
  for (const difference of differences) {
    const change = await changeClock(load, folder.path, () => setSystemClock(clockFile, difference))
    servedSeconds = Math.max(servedSeconds, change.signInSeconds)
    detectedSeconds = Math.max(detectedSeconds, change.detectionSeconds)
    print(`${difference / minute} minutes: ${JSON.stringify(change)}, ${stats.calls} calls, ${stats.longestMs} ms`)
    await delay(pauseMs)
  }
  await stop()
  const { lost, duplicates } = await verifyLoad(load)
  const completedIds = [...acknowledged.executed.values(), ...acknowledged.batches.flatMap(({ jobIds }) => jobIds)]
  const findMissing = () => completedIds.filter((id) => !receiver.jobIds().has(id))
  await waitFor('the events of all jobs', async () => findMissing().length === 0, 120).catch(() => undefined)
  const failures = [...stats.serverErrors, ...stats.violations, ...stats.unexpected, ...stats.abandoned]
  claimNone('failed calls', failures, stats.calls)
  claimNone('lost or repeated effects', [...lost, ...duplicates], completedIds.length)
  claimNone('events that the webhook did not receive', findMissing(), completedIds.length)
  claimAtMost('longest time until a caller is served', Math.max(servedSeconds, stats.longestMs / 1000), 60, ' s')
  claimAtMost('longest time until a silent cluster is Offline', detectedSeconds, 24 + 60, ' s')
})
