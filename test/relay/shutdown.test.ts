import { afterEach, beforeEach, expect, test } from 'vitest'
import { isLong } from '../support/long.ts'
import { gone } from './support/processes.ts'
import { Stage } from './support/stage.ts'

let stage: Stage

beforeEach(async () => {
  stage = await Stage.set()
})

afterEach(() => stage.clear())

test('SIGTERM ends the scripts, reports them as interrupted and says goodbye', async () => {
  const job = stage.peer.addJob({ script: "trap '' TERM; echo $$; while :; do sleep 1000; done" })
  await stage.peer.until(() => job.output !== '')
  expect(await stage.relay.end('SIGTERM')).toBe(0)
  expect(job.completion).toMatchObject({ outcome: 'interrupted', exitCode: null })
  expect(stage.peer.goodbyes).toEqual(['SIGTERM'])
  await gone(Number(job.output))
})

test('SIGINT ends an idle relay', async () => {
  await stage.relay.said('Connected')
  expect(await stage.relay.end('SIGINT')).toBe(0)
  expect(stage.peer.goodbyes).toEqual(['SIGINT'])
})

test('a second signal ends a relay that waits for its server at once', async () => {
  const job = stage.peer.addJob({ script: 'echo $$; sleep 1000' })
  await stage.peer.until(() => job.output !== '')
  stage.peer.failing.add('complete')
  const ended = stage.relay.end('SIGTERM')
  await stage.peer.until(() => stage.peer.calls.includes('complete'))
  expect(await stage.relay.end('SIGTERM')).toBe(143)
  await ended
})

// It has some seconds for that. A relay that was killed reports after a restart in the journeys, too.
test.runIf(isLong)('what SIGTERM left no time to report is reported after a restart', async () => {
  const job = stage.peer.addJob({ script: 'echo $$; sleep 1000' })
  await stage.peer.until(() => job.output !== '')
  stage.peer.failing.add('complete')
  expect(await stage.relay.end('SIGTERM')).toBe(0)
  stage.peer.failing.delete('complete')
  stage.startRelay()
  await stage.peer.until(() => job.completion !== undefined)
  expect(job.completion?.outcome).toBe('interrupted')
})

test('the lease of a running job is kept by the heartbeat, and its slot is told as taken', async () => {
  const job = stage.peer.addJob({ script: 'echo $$; sleep 1000' })
  await stage.peer.until(() => stage.peer.beats.some(({ running }) => running.includes(job.id)))
  const beat = stage.peer.beats.find(({ running }) => running.includes(job.id))
  expect(beat?.freeSlots).toBe(3)
  expect(beat?.nodes).toEqual([{ id: stage.peer.nodeIds[0], status: 'Online' }])
  await stage.relay.end('SIGTERM')
  await gone(Number(job.output))
})
