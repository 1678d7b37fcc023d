import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Handled } from './consumer.ts'

const program = new URL('consumer.ts', import.meta.url)

/** Processes that consume the queues which this process's environment names. */
export interface Consumers extends AsyncDisposable {
  /** All that they have handled up to now. */
  handled(): Promise<Handled>
  /** Waits until nothing waits or is under way any more. */
  idle(): Promise<void>
}

/** The queues hand out their messages shuffled, and a share of them twice. */
export async function beHostile(seed: number): Promise<void> {
  await ask('_faults', { duplicateRate: 0.2, reorderRate: 1, seed })
}

async function ask(path: string, body?: object): Promise<any> {
  const headers = { 'content-type': 'application/json' }
  const request = body === undefined ? {} : { method: 'POST', headers, body: JSON.stringify(body) }
  const response = await fetch(`${process.env['AWS_ENDPOINT_URL_SQS']}/${path}`, request)
  if (!response.ok) throw new Error(`The queues answer ${response.status} to ${path}.`)
  return response.json()
}

const sumOf = (each: readonly Handled[]): Handled => {
  const sum = (name: keyof Handled) => each.reduce((total, one) => total + one[name], 0)
  return {
    jobs: sum('jobs'),
    batches: sum('batches'),
    events: sum('events'),
    failed: sum('failed'),
    again: sum('again'),
    twice: sum('twice'),
  }
}

const consumed = new Set(['jobs', 'batches', 'events'])

async function areEmpty(): Promise<boolean> {
  const { queues }: { queues: { name: string; waiting: number; inFlight: number; delayed: number }[] } =
    await ask('_queues')
  return queues
    .filter(({ name }) => consumed.has(name))
    .every(({ waiting, inFlight, delayed }) => waiting + inFlight + delayed === 0)
}

export function startConsumers(count: number, seed: number): Consumers {
  const children = Array.from({ length: count }, (_, index) => fork(program, [String(seed + index)], { execArgv: [] }))
  const tell = async (word: string): Promise<Handled> => {
    const answers = children.map(async (child) => {
      const answered = once(child, 'message')
      child.send(word)
      const [handled]: Handled[] = await answered
      return handled ?? []
    })
    return sumOf((await Promise.all(answers)).flat())
  }
  return {
    handled: () => tell('how far?'),
    // What is taken out of one queue may lead to a message of another: nothing twice in a row.
    idle: async () => {
      for (let empty = 0; empty < 3;) {
        empty = (await areEmpty()) ? empty + 1 : 0
        await delay(200)
      }
    },
    [Symbol.asyncDispose]: async () => {
      await tell('stop')
      const ends = children.map((child) => once(child, 'exit'))
      for (const child of children) child.disconnect()
      await Promise.all(ends)
    },
  }
}
