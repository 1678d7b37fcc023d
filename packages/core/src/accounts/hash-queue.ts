import { platformError } from '../error.ts'

/**
 * Password hashes keep a core busy: at most four run at once in this process (D17), and some wait. Nobody has more than
 * half of the places, so that one who signs in without end, or guesses, keeps nobody else from it.
 */

const atOnce = 4
const atOnceOfOne = 2
const waitingAtMost = 16
const waitingAtMostOfOne = 4

interface Waiting {
  who: string
  start: () => void
}

/** Whose hashes run, each as often as it has one. */
const running: string[] = []
const waiting: Waiting[] = []

const runningOf = (who: string): number => running.filter((each) => each === who).length
const mayStart = (who: string): boolean => running.length < atOnce && runningOf(who) < atOnceOfOne

/** Does a piece of work when its turn has come. Throws `rate_limited` where too many wait already. */
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

/** Whoever has the fewest at work comes first; of several the one that waits longest. */
function startNext(): void {
  const [next] = waiting.filter(({ who }) => mayStart(who)).toSorted((a, b) => runningOf(a.who) - runningOf(b.who))
  if (next === undefined) return
  waiting.splice(waiting.indexOf(next), 1)
  running.push(next.who)
  next.start()
}
