import { expect, test } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { until } from '../conformance/support/until.ts'
import { PlatformProcess } from '../support/platform.ts'

// By default the tests of the runner show that a stop lets what is under way end.
test('SIGTERM stops the platform cleanly: what is under way is answered, and all of it is there afterwards', async () => {
  await using platform = await PlatformProcess.start()
  const api = await platform.setUp()
  const relay = await api.newRelay()
  answered(await relay.beat(), 200)
  const beatAt = async () => (await api.cluster(relay.clusterId)).relay.lastHeartbeatAt
  const before = await beatAt()
  const held = relay.beat({}, 'wait=20')
  await until('the beat has arrived', async () => (await beatAt()) !== before)
  const registered = Array.from({ length: 8 }, () => api.newCluster())
  await Promise.any(registered)

  const stopped = platform.stop()
  const outcomes = await Promise.allSettled(registered)
  answered(await held, 200)
  expect(await stopped).toEqual({ exitCode: 0, signal: null })

  await platform.restart()
  expect(await api.cluster(relay.clusterId)).toMatchObject({ nodeCount: 1 })
  for (const outcome of outcomes) {
    if (outcome.status === 'fulfilled') expect(await api.cluster(outcome.value.id)).toMatchObject({ status: 'Pending' })
  }
})
