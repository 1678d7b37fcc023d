import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { client } from '@platform/core/db/client'
import type { Scheduler } from 'fast-check'

/**
 * A stage for callers of one process: each call to the store is held until every caller has one, or has ended; then the
 * scheduler picks which of them is made, and it is made to its answer before the next. So a schedule is the order of all calls,
 * and a failing one can be played again.
 */

interface Actor {
  held: number
  isOver: boolean
  play: <Result>(command: string, work: () => Promise<Result>) => Promise<Result>
}

const actors = new AsyncLocalStorage<Actor>()

client.middlewareStack.add(
  (next, context) => (args) => {
    const actor = actors.getStore()
    return actor === undefined ? next(args) : actor.play(context.commandName ?? '', () => next(args))
  },
  { step: 'initialize', name: 'stage' },
)

/** One that waits for another caller, and not for the store, is not waited for any longer than this. */
const patienceMs = 500

/** Lets callers do their work in the order that the scheduler picks; answers how each ended. */
export async function interleaved(
  scheduler: Scheduler,
  callers: readonly (() => Promise<unknown>)[],
): Promise<PromiseSettledResult<unknown>[]> {
  let noticed = Promise.withResolvers<void>()
  const notice = () => {
    noticed.resolve()
    noticed = Promise.withResolvers()
  }
  const all: Actor[] = []
  const begin = (work: () => Promise<unknown>, index: number): Promise<unknown> => {
    const actor = newActor(scheduler, `caller ${index + 1}`, notice)
    all.push(actor)
    return actors.run(actor, work).finally(() => {
      actor.isOver = true
      notice()
    })
  }
  const areReady = () => all.every(({ held, isOver }) => held > 0 || isOver)
  const ready = async () => {
    while (!areReady()) {
      const isStuck = await Promise.race([noticed.promise, delay(patienceMs, 'stuck', { ref: false })])
      if (isStuck === 'stuck' && scheduler.count() > 0) return
    }
  }
  const ends: Promise<unknown>[] = []
  // One after the other up to its first call, so that the same seed meets the same callers in the same order.
  for (const [index, work] of callers.entries()) {
    ends.push(begin(work, index))
    await ready()
  }
  const settled = Promise.allSettled(ends)
  while (!all.every(({ isOver }) => isOver)) {
    await ready()
    if (scheduler.count() > 0) await scheduler.waitOne()
  }
  return settled
}

function newActor(scheduler: Scheduler, name: string, notice: () => void): Actor {
  const actor: Actor = {
    held: 0,
    isOver: false,
    play: async (command, work) => {
      const done = Promise.withResolvers<void>()
      actor.held++
      const released = scheduler.schedule(Promise.resolve(), `${name} ${command}`, undefined, async (release) => {
        actor.held--
        await release()
        await done.promise
      })
      notice()
      await released
      try {
        return await work()
      } finally {
        done.resolve()
      }
    },
  }
  return actor
}
