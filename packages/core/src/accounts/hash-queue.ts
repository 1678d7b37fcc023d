import { platformError } from '../error.ts'

/**
 * Limits the concurrent password hashes of a process, because each keeps a core busy. A key gets at most half of the
 * slots, so that guessing one password does not block other sign-ins.
 */

const maxRunning = 4
const maxRunningPerKey = 2
const maxWaiting = 16
const maxWaitingPerKey = 4

interface Waiter {
  key: string
  start: () => void
}

const runningKeys: string[] = []
const waiters: Waiter[] = []

const countRunning = (key: string): number => runningKeys.filter((runningKey) => runningKey === key).length
const canStart = (key: string): boolean => runningKeys.length < maxRunning && countRunning(key) < maxRunningPerKey

export async function withFairQueue<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
  await acquireSlot(key)
  try {
    return await work()
  } finally {
    runningKeys.splice(runningKeys.indexOf(key), 1)
    startNext()
  }
}

async function acquireSlot(key: string): Promise<void> {
  if (canStart(key)) {
    runningKeys.push(key)
    return
  }
  const isKeyFull = waiters.filter((waiter) => waiter.key === key).length >= maxWaitingPerKey
  if (isKeyFull || waiters.length >= maxWaiting) throw platformError('rate_limited', { retryAfterSeconds: 1 })
  await new Promise<void>((resolve) => void waiters.push({ key, start: resolve }))
}

/** Of the hashes that may start, starts the oldest one whose key has the fewest running hashes. */
function startNext(): void {
  const [nextWaiter] = waiters
    .filter(({ key }) => canStart(key))
    .toSorted((a, b) => countRunning(a.key) - countRunning(b.key))
  if (nextWaiter === undefined) return
  waiters.splice(waiters.indexOf(nextWaiter), 1)
  runningKeys.push(nextWaiter.key)
  nextWaiter.start()
}
