import { platformError } from '../error.ts'

/**
 * Password hashes keep a core busy: at most four run at once in this process, and some wait. Each key gets at most half
 * of the places, so that guessing does not block other sign-ins.
 */

const atOnce = 4
const atOnceOfOne = 2
const waitingAtMost = 16
const waitingAtMostOfOne = 4

interface Waiting {
  who: string
  start: () => void
}

/** One entry for each running hash. */
const running: string[] = []
const waiting: Waiting[] = []

const runningOf = (who: string): number => running.filter((each) => each === who).length
const mayStart = (who: string): boolean => running.length < atOnce && runningOf(who) < atOnceOfOne

/** Runs the work in turn. Throws `rate_limited` if too many are waiting. */
export async function withFairQueue<Result>(who: string, work: () => Promise<Result>): Promise<Result> {
  await turnOf(who)
  try {
    return await work()
  } finally {
    running.splice(running.indexOf(who), 1)
    startNext()
  }
}

async function turnOf(who: string): Promise<void> {
  if (mayStart(who)) {
    running.push(who)
    return
  }
  const isCrowded = waiting.filter((each) => each.who === who).length >= waitingAtMostOfOne
  if (isCrowded || waiting.length >= waitingAtMost) throw platformError('rate_limited', { retryAfterSeconds: 1 })
  await new Promise<void>((resolve) => void waiting.push({ who, start: resolve }))
}

/** The key with the fewest running hashes is next; among several, the one that waited longest. */
function startNext(): void {
  const [next] = waiting.filter(({ who }) => mayStart(who)).toSorted((a, b) => runningOf(a.who) - runningOf(b.who))
  if (next === undefined) return
  waiting.splice(waiting.indexOf(next), 1)
  running.push(next.who)
  next.start()
}
