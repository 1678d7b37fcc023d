import { afterAll, beforeAll, test, vi } from 'vitest'
import { bootstrapPlatform } from '../support/fixtures.ts'
import { onStoreCall } from '../support/store-calls.ts'
import { deliver, maxReceiveCount, type QueueHandler } from './poison/deliver.ts'
import { instance, type Queue, queues } from './poison/queues.ts'
import { RoundClaims } from './support/claims.ts'
import { amount, isShort, print } from './support/run.ts'

const { moduleHost, receiver } = await vi.hoisted(() => import('./poison/servers.ts'))

const kinds = ['malformed JSON', 'an unknown type', 'a deleted resource', 'the store fails'] as const

const write = process.stdout.write.bind(process.stdout)

beforeAll(async () => {
  await bootstrapPlatform()
  // Hides log lines, because each failed message writes one.
  vi.spyOn(process.stdout, 'write').mockImplementation(
    (text: any) => String(text).startsWith('{"time":') || write(text),
  )
})
afterAll(async () => {
  vi.restoreAllMocks()
  for (const server of [instance, receiver, moduleHost]) await server[Symbol.asyncDispose]()
})

interface Poison {
  body: string
  /** The store rejects every call that contains this id. */
  rejectedId?: string
  isDeadLettered: boolean
  isSettled: () => Promise<boolean>
}

const eventOf = (body: string): Parameters<QueueHandler>[0] => ({ Records: [{ messageId: 'message', body } as any] })

async function newPoison(queue: Queue, kind: (typeof kinds)[number]): Promise<Poison> {
  const unknownMessage = { isDeadLettered: true, isSettled: async () => true }
  if (kind === 'malformed JSON') return { ...unknownMessage, body: '{"organisationId": "org_' }
  if (kind === 'an unknown type') return { ...unknownMessage, body: '{"type": "unknown"}' }
  if (kind === 'a deleted resource') {
    const { body, isDoneOnce } = await queue.newDeleted()
    return { body: JSON.stringify(body), isDeadLettered: false, isSettled: isDoneOnce }
  }
  const { body, id, isDoneOnce, hasFailedOnce } = await (queue.newFailing ?? queue.newMessage)()
  // Without a function for dead letters, the sweep sends the message again.
  const afterSweep = async () => {
    await queue.handler(eventOf(JSON.stringify(body)))
    return isDoneOnce()
  }
  return { body: JSON.stringify(body), rejectedId: id, isDeadLettered: true, isSettled: hasFailedOnce ?? afterSweep }
}

async function tryPoison(queue: Queue, poison: Poison, position: number, claims: RoundClaims): Promise<void> {
  const { name } = queue
  const messages = []
  while (messages.length < 9) messages.push(await queue.newMessage())
  const bodies = messages.map(({ body }) => JSON.stringify(body)).toSpliced(position, 0, poison.body)
  const rejecting = onStoreCall({
    before: async ({ input }) => {
      if (poison.rejectedId === undefined || !JSON.stringify(input).includes(poison.rejectedId)) return
      throw new Error('The store rejects this call.')
    },
  })
  const { events, deadLetters } = await deliver(bodies, queue.handler)
  rejecting[Symbol.dispose]()
  const areDone = (await Promise.all(messages.map(({ isDoneOnce }) => isDoneOnce()))).every(Boolean)
  const isAloneLater = events
    .slice(1)
    .flat()
    .every((body) => body === poison.body)
  const isFirstEvent = events[0]?.length === 10 && events[0][position] === poison.body
  claims.check(
    `${name}: the other nine messages are done once, at their first receive`,
    isFirstEvent && isAloneLater && areDone,
  )
  if (poison.isDeadLettered) {
    const isDead = String(deadLetters) === poison.body && events.length === maxReceiveCount
    claims.check(`${name}: the poison alone is dead-lettered after ${maxReceiveCount} receives`, isDead)
    for (const body of deadLetters) await queue.deadLetterHandler?.(eventOf(body))
  }
  const hasNoOther = poison.isDeadLettered || deadLetters.length === 0
  const end = queue.deadLetterHandler === undefined ? 'is done once after the sweep' : 'fails its job once'
  const claim = `${name}: a deleted resource has no effect, a failed message ${end}`
  claims.check(claim, hasNoOther && (await poison.isSettled()))
}

test.for(queues.map((queue) => [queue.name, queue] as const))(
  '%s: a poisoned message does not affect the other nine of its batch',
  async ([name, queue]) => {
    const claims = new RoundClaims()
    const positions = amount([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [4])
    for (const kind of isShort && name !== 'jobs' ? kinds.slice(-1) : kinds) {
      for (const position of positions) await tryPoison(queue, await newPoison(queue, kind), position, claims)
      print(`${name}: ${kind}`)
    }
    claims.claim()
  },
)
