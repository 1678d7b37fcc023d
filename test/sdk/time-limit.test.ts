import { getEventListeners } from 'node:events'
import { withinLimit } from '@platform/modules/time-limit'
import { expect, test } from 'vitest'

/** The signal that some work was given, and how the work ended. */
async function signalOf(work: (signal: AbortSignal) => Promise<void>, limitMs = 1000) {
  const stopping = new AbortController()
  let given: AbortSignal | undefined
  const ending = withinLimit('The work', limitMs, [stopping.signal], (signal) => {
    given = signal
    return work(signal)
  })
  const outcome = await ending.catch(String)
  return { given: given!, stopping, outcome }
}

test.each([
  ['ended well', async () => {}, undefined],
  ['failed', () => Promise.reject(new Error('It failed.')), 'Error: It failed.'],
  ['took too long', () => new Promise<void>(() => {}), 'TimeLimitError: The work took longer than 20 ms.'],
])('what %s is waited for no more: nothing of it is kept until the module stops', async (_name, work, expected) => {
  const { given, outcome } = await signalOf(work, 20)
  expect(outcome).toBe(expected)
  expect(getEventListeners(given, 'abort')).toEqual([])
})

test('who listens to the signal for longer still learns that the module stops', async () => {
  const { given, stopping } = await signalOf(async () => {})
  let isAborted = false
  given.addEventListener('abort', () => (isAborted = true))
  stopping.abort()
  expect(isAborted).toBe(true)
})
