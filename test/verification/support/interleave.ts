import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { client } from '@platform/core/db/table'
import type { Scheduler } from 'fast-check'

interface Caller {
  heldCalls: number
  isDone: boolean
  schedule: <Result>(command: string, call: () => Promise<Result>) => Promise<Result>
}

const callers = new AsyncLocalStorage<Caller>()

client.middlewareStack.add(
  (next, context) => (args) => {
    const caller = callers.getStore()
    return caller === undefined ? next(args) : caller.schedule(context.commandName ?? '', () => next(args))
  },
  { step: 'initialize', name: 'interleave' },
)
// The client may have cached its steps.
client.destroy()

/** A caller that waits for another caller makes no store call. After this time the other callers continue. */
const idleTimeoutMs = 500

/**
 * Runs tasks concurrently. Each store call is held until every unfinished task has a pending call. Then the scheduler
 * picks the next call and waits for its response. A schedule is the order of all calls and can be repeated.
 */
export async function interleave<Result>(
  scheduler: Scheduler,
  tasks: readonly (() => Promise<Result>)[],
): Promise<PromiseSettledResult<Result>[]> {
  let change = Promise.withResolvers<void>()
  const notify = () => {
    change.resolve()
    change = Promise.withResolvers()
  }
  const startedCallers: Caller[] = []
  const allHeld = async () => {
    while (!startedCallers.every(({ heldCalls, isDone }) => heldCalls > 0 || isDone)) {
      const isTimedOut = await Promise.race([change.promise, delay(idleTimeoutMs, true, { ref: false })])
      if (isTimedOut === true && scheduler.count() > 0) return
    }
  }
  const results: Promise<Result>[] = []
  // Start one task after the other, so that a seed always produces the same schedule.
  for (const [index, task] of tasks.entries()) {
    const caller = newCaller(scheduler, `caller ${index + 1}`, notify)
    startedCallers.push(caller)
    const finish = () => {
      caller.isDone = true
      notify()
    }
    results.push(callers.run(caller, task).finally(finish))
    await allHeld()
  }
  const settled = Promise.allSettled(results)
  while (!startedCallers.every(({ isDone }) => isDone)) {
    await allHeld()
    if (scheduler.count() > 0) await scheduler.waitNext(1)
  }
  return settled
}

function newCaller(scheduler: Scheduler, name: string, notify: () => void): Caller {
  const caller: Caller = {
    heldCalls: 0,
    isDone: false,
    schedule: async (command, call) => {
      const finished = Promise.withResolvers<void>()
      caller.heldCalls++
      const picked = scheduler.schedule(Promise.resolve(), `${name} ${command}`, undefined, async (release) => {
        caller.heldCalls--
        await release()
        await finished.promise
      })
      notify()
      await picked
      return call().finally(finished.resolve)
    },
  }
  return caller
}
