import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import type { Peer } from './support/peer.ts'
import { Stage } from './support/stage.ts'

let stage: Stage

afterEach(() => stage.clear())

function beatEverySecond(peer: Peer): void {
  peer.holdsBeats = false
  peer.heartbeatIntervalSeconds = 1
}

test('an enrolment whose answer was lost is repeated with the same key', async () => {
  stage = await Stage.set({ prepare: (peer) => peer.lostAnswers.add('enroll') })
  await stage.peer.run({ script: 'true' })
  expect(stage.peer.enrolments).toHaveLength(2)
  expect(stage.peer.enrolments[0]?.publicKey).toEqual(stage.peer.enrolments[1]?.publicKey)
})

test('an enrolment that was cut short by a kill is repeated with the same key', async () => {
  stage = await Stage.set({ prepare: (peer) => peer.lostAnswers.add('enroll') })
  await stage.peer.until(() => stage.peer.enrolments.length === 1)
  await stage.relay.end('SIGKILL')
  stage.startRelay()
  await stage.peer.run({ script: 'true' })
  expect(new Set(stage.peer.enrolments.map(({ publicKey }) => publicKey.x)).size).toBe(1)
})

test('a lost answer to any call of a job neither repeats nor loses anything', async () => {
  stage = await Stage.set()
  const ledger = stage.file('ledger')
  for (const call of ['claim', 'output', 'complete'] as const) stage.peer.lostAnswers.add(call)
  const job = await stage.peer.run({ script: `echo ran >> ${ledger}; echo once` })
  await stage.peer.until(() => job.reports.length === 2)
  expect(job.claimCount).toBe(2)
  expect(job.output).toBe('once\n')
  expect(job.reports[1]).toEqual(job.reports[0])
  expect(readFileSync(ledger, 'utf8')).toBe('ran\n')
})

test('a result waits until the server is there again', async () => {
  stage = await Stage.set()
  for (const call of ['output', 'complete'] as const) stage.peer.failing.add(call)
  const job = stage.peer.addJob({ script: 'echo late' })
  await stage.peer.until(() => stage.peer.calls.filter((name) => name === 'output').length === 3)
  stage.peer.failing.clear()
  await stage.peer.until(() => job.completion !== undefined)
  expect(job.output).toBe('late\n')
})

test('a clock that is ten minutes off is corrected by what the server says', async () => {
  stage = await Stage.set({ prepare: (peer) => void (peer.guard.skewSeconds = 600) })
  const job = await stage.peer.run({ script: 'true' })
  expect(job.completion?.outcome).toBe('exited')
})

test('a relay that was revoked says so and ends', async () => {
  stage = await Stage.set()
  const job = stage.peer.addJob({ script: 'echo $$; sleep 1000' })
  await stage.peer.until(() => job.output !== '')
  stage.peer.guard.revoke(stage.peer.relayId)
  stage.peer.heartbeatIntervalSeconds = 1
  job.isCancelled = true
  stage.peer.changed()
  expect(await stage.relay.exitCode).toBe(4)
  expect(stage.relay.text).toContain('Issue a new token')
})

test('a server that does not hold beats is asked again after the interval', async () => {
  stage = await Stage.set({ prepare: beatEverySecond })
  await stage.peer.until(() => stage.peer.beats.length === 3)
  const job = await stage.peer.run({ script: 'exit 3' })
  expect(job.completion?.exitCode).toBe(3)
  expect(stage.peer.refusals).toEqual([])
})

test('an enrollment token that is not known ends the relay with advice', async () => {
  stage = await Stage.set({ environment: { PLAT_ENROLLMENT_TOKEN: 'enroll_none.secret' } })
  expect(await stage.relay.exitCode).toBe(3)
  expect(stage.relay.text).toContain('Issue a new one')
})

test('an enrollment token that was used elsewhere ends the relay with advice', async () => {
  stage = await Stage.set()
  await stage.relay.said('Connected')
  const other = stage.startRelay({ args: ['--state-dir', stage.file('other')] })
  expect(await other.exitCode).toBe(3)
  expect(other.text).toContain('enrollment_token_used')
})

test('the key of the relay is for its owner alone', async () => {
  stage = await Stage.set()
  await stage.relay.said('Connected')
  const key = join(stage.workplace.stateFolder, `${stage.token.split('.')[0]}.key.pem`)
  expect(statSync(key).mode & 0o777).toBe(0o600)
  expect(statSync(stage.workplace.stateFolder).mode & 0o777).toBe(0o700)
})
