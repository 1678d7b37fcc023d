import { type ScheduledEvent, startSchedule } from '@platform/local/events/schedule'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

const minuteMs = 60_000

beforeEach(() => {
  vi.useFakeTimers({ now: new Date('2026-11-21T12:00:00.500Z') })
})

afterEach(() => {
  vi.useRealTimers()
})

function startEveryMinute(run: () => Promise<unknown> = () => Promise.resolve()) {
  const events: ScheduledEvent[] = []
  const logLines: string[] = []
  const schedule = startSchedule({
    name: 'sweep',
    intervalMs: minuteMs,
    log: (message) => logLines.push(message),
    invoke: (event) => {
      events.push(event)
      return run()
    },
  })
  return { ...schedule, events, logged: logLines, times: () => events.map(({ time }) => time.slice(11, 19)) }
}

test('runs at every multiple of the interval, with the event of EventBridge', async () => {
  const schedule = startEveryMinute()
  await vi.advanceTimersByTimeAsync(minuteMs - 1)
  expect(schedule.times()).toEqual([])
  await vi.advanceTimersByTimeAsync(2 * minuteMs + 1)
  expect(schedule.times()).toEqual(['12:01:00', '12:02:00', '12:03:00'])
  await schedule.stop()
  expect(schedule.events[0]).toEqual({
    version: '0',
    id: expect.stringMatching(/^[\da-f-]{36}$/),
    'detail-type': 'Scheduled Event',
    source: 'aws.events',
    account: '000000000000',
    time: '2026-11-21T12:01:00Z',
    region: 'us-east-1',
    resources: ['arn:aws:events:us-east-1:000000000000:rule/sweep'],
    detail: {},
  })
})

test('skips runs while one is running', async () => {
  let runningCount = 0
  const schedule = startEveryMinute(async () => {
    expect(++runningCount).toBe(1)
    await new Promise((resolve) => setTimeout(resolve, 130_000))
    runningCount--
  })
  await vi.advanceTimersByTimeAsync(5 * minuteMs)
  expect(schedule.times()).toEqual(['12:01:00', '12:04:00'])
  const stopped = schedule.stop()
  await vi.advanceTimersByTimeAsync(130_000)
  await stopped
})

test('logs a failed run, and continues', async () => {
  const schedule = startEveryMinute(() => Promise.reject(new Error('no')))
  await vi.advanceTimersByTimeAsync(2 * minuteMs)
  expect(schedule.times()).toHaveLength(2)
  expect(schedule.logged).toEqual(['a scheduled run failed', 'a scheduled run failed'])
  await schedule.stop()
})

test('a stop waits for the current run, and starts no more', async () => {
  const finish = Promise.withResolvers<void>()
  const schedule = startEveryMinute(() => finish.promise)
  await vi.advanceTimersByTimeAsync(minuteMs)
  let isStopped = false
  const stopPromise = schedule.stop().then(() => (isStopped = true))
  await vi.advanceTimersByTimeAsync(2 * minuteMs)
  expect(isStopped).toBe(false)
  finish.resolve()
  await stopPromise
  expect(schedule.times()).toHaveLength(1)
})
