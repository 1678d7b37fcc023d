import { getEventListeners } from 'node:events'
import { withinLimit } from '@platform/modules/time-limit'
import { expect, test } from 'vitest'

async function signalOf(work: (signal: AbortSignal) => Promise<void>, limitMs = 1000) {
  const stopController = new AbortController()
  let workSignal: AbortSignal | undefined
  const ending = withinLimit('The work', limitMs, [stopController.signal], (signal) => {
    workSignal = signal
    return work(signal)
  })
  const outcome = await ending.catch(String)
  return { workSignal: workSignal!, stopping: stopController, outcome }
}

test.each([
  ['completed', async () => {}, undefined],
  ['failed', () => Promise.reject(new Error('It failed.')), 'Error: It failed.'],
  ['took too long', () => new Promise<void>(() => {}), 'TimeLimitError: The work took longer than 20 ms.'],
])('removes its listeners after the work has %s', async (_name, work, expected) => {
  const { workSignal, outcome } = await signalOf(work, 20)
  expect(outcome).toBe(expected)
  expect(getEventListeners(workSignal, 'abort')).toEqual([])
})

test('aborts the signal when the module stops, after the work has ended', async () => {
  const { workSignal, stopping } = await signalOf(async () => {})
  let isAborted = false
  workSignal.addEventListener('abort', () => (isAborted = true))
  stopping.abort()
  expect(isAborted).toBe(true)
})
