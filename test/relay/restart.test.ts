import { existsSync, readFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { gone } from './support/processes.ts'
import { Stage } from './support/stage.ts'

let stage: Stage

beforeEach(async () => {
  stage = await Stage.set()
})

afterEach(() => stage.clear())

test('a script that was cut short by a kill of the relay is reported as interrupted and not run again', async () => {
  const ledger = stage.file('ledger')
  const job = stage.peer.addJob({ script: `echo ran >> ${ledger}; echo $$; sleep 1000` })
  await stage.peer.until(() => job.output !== '')
  await stage.relay.end('SIGKILL')
  stage.startRelay()
  await stage.peer.until(() => job.completion !== undefined)
  expect(job.completion).toMatchObject({ outcome: 'interrupted', exitCode: null })
  await gone(Number(job.output))
  await stage.peer.run({ script: 'true' })
  expect(readFileSync(ledger, 'utf8')).toBe('ran\n')
  expect(stage.peer.enrolments).toHaveLength(1)
})

test('a job whose claim was on its way at the kill is reported as interrupted', async () => {
  const ledger = stage.file('ledger')
  stage.peer.lostAnswers.add('claim')
  const job = stage.peer.addJob({ script: `echo ran >> ${ledger}` })
  await stage.peer.until(() => job.claimCount === 1)
  stage.peer.failing.add('claim')
  await stage.relay.end('SIGKILL')
  stage.peer.failing.delete('claim')
  stage.startRelay()
  await stage.peer.until(() => job.completion !== undefined)
  expect(job.completion?.outcome).toBe('interrupted')
  expect(existsSync(ledger)).toBe(false)
})

test('a result that the server had not taken before the kill arrives whole after a restart', async () => {
  stage.peer.failing.add('output')
  const journal = () => readFileSync(`${stage.workplace.stateFolder}/journal.jsonl`, 'utf8')
  const job = stage.peer.addJob({ script: 'seq 1 100000; exit 3' })
  await vi.waitFor(() => expect(journal()).toContain(`"state":"finished","jobId":"${job.id}"`), { timeout: 20_000 })
  await stage.relay.end('SIGKILL')
  stage.peer.failing.delete('output')
  stage.startRelay()
  await stage.peer.until(() => job.completion !== undefined)
  expect(job.completion).toMatchObject({ outcome: 'exited', exitCode: 3 })
  expect(job.output).toBe(Array.from({ length: 100_000 }, (_, index) => `${index + 1}\n`).join(''))
})

test('a result whose acknowledgement was lost is reported again after a restart', async () => {
  stage.peer.lostAnswers.add('complete')
  const job = stage.peer.addJob({ script: 'exit 4' })
  await stage.peer.until(() => job.reports.length === 1)
  await stage.relay.end('SIGKILL')
  stage.startRelay()
  await stage.peer.until(() => job.reports.length >= 2)
  expect(new Set(job.reports.map(({ exitCode }) => exitCode))).toEqual(new Set([4]))
  expect(job.claimCount).toBe(1)
})

test('an enrolled relay goes on by its state folder alone', async () => {
  await stage.peer.run({ script: 'true' })
  await stage.relay.end('SIGKILL')
  stage.startRelay({ environment: { PLAT_ENROLLMENT_TOKEN: '' } })
  await stage.peer.run({ script: 'true' })
  expect(stage.peer.enrolments).toHaveLength(1)
})

test('a new token enrolls the relay anew in the same state folder', async () => {
  await stage.peer.run({ script: 'true' })
  await stage.relay.end('SIGKILL')
  stage.startRelay({ environment: { PLAT_ENROLLMENT_TOKEN: stage.peer.issueToken() } })
  await stage.peer.run({ script: 'true' })
  const [first, second] = stage.peer.enrolments
  expect(second?.publicKey.x).not.toBe(first?.publicKey.x)
})

test('a second relay on the same state folder does not start', async () => {
  await stage.relay.said('Connected')
  const first = stage.relay
  const second = stage.startRelay()
  expect(await second.exitCode).toBe(5)
  expect(second.text).toContain('Another relay')
  await stage.peer.run({ script: 'true' })
  await first.end('SIGKILL')
})
