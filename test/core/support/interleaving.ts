import { expect, onTestFinished } from 'vitest'
import { beforeCommand, onStoreCall } from '../../support/store-calls.ts'

/** Runs an action before the next, or the `nth`, command of this kind. The test fails if no such command is sent. */
export function runBefore(command: RegExp, action: () => Promise<unknown>, nth = 1): void {
  let hasRun = false
  const run = () => {
    hasRun = true
    return action()
  }
  beforeCommand(command, run, nth)
  onTestFinished(() => expect(hasRun, `A command ${command} is sent`).toBe(true))
}

/** Fails commands of this kind until disposed of. */
export const failCommands = (command = /./): Disposable =>
  onStoreCall({
    before: async (call) => {
      if (command.test(call.command)) throw new RangeError('The store has failed.')
    },
  })
