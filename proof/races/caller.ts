import { setTimeout as delay } from 'node:timers/promises'
import type { GatewayHandler } from '@platform/http/event'
import { handler as auth } from '../../functions/auth.ts'
import { handler as clusters } from '../../functions/clusters.ts'
import { handler as jobs } from '../../functions/jobs.ts'
import { handler as relay } from '../../functions/relay.ts'
import { handler as setup } from '../../functions/setup.ts'
import { posting, send, type Sent } from '../../test/support/event.ts'

// A process with functions of its own, which sends its calls to them all at once when it is told to.

const handlers: Readonly<Record<string, GatewayHandler>> = { auth, clusters, jobs, relay, setup }

/** A call of one caller. */
export interface Call {
  /** The function that is called. */
  function: 'auth' | 'clusters' | 'jobs' | 'relay' | 'setup'
  sent: Sent
  /** It comes a little later than the others. */
  afterMs?: number
  /** The tokens of the answer are refreshed at once, and those of that answer, so many times. */
  refreshes?: number
}

/** What a caller was answered, and when by the machine's clock. */
export interface Answer {
  status: number
  json: any
  beganUs: number
  endedUs: number
}

const nowUs = (): number => Number(process.hrtime.bigint() / 1000n)

async function answerTo(name: Call['function'], sent: Sent): Promise<Answer> {
  const handler = handlers[name]
  if (handler === undefined) throw new Error(`There is no function ${name}.`)
  const beganUs = nowUs()
  const { status, json } = await send(handler, sent)
  return { status, json, beganUs, endedUs: nowUs() }
}

/** One answer for each call that was made: of refreshes one after another, up to the first that is refused. */
async function make({ function: name, sent, afterMs = 0, refreshes = 0 }: Call): Promise<Answer[]> {
  if (afterMs > 0) await delay(afterMs)
  const answers = [await answerTo(name, sent)]
  for (let count = 0; count < refreshes; count++) {
    const { status, json } = answers.at(-1) ?? {}
    if (status !== 200) break
    answers.push(await answerTo('auth', posting('/api/v1/auth/refresh', { refreshToken: json.refreshToken })))
  }
  return answers
}

process.on('message', (calls: Call[]) => {
  void Promise.all(calls.map(make)).then((answers) => process.send?.(answers))
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
