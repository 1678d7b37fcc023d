import type { Part } from './part.ts'
import { enterWorld } from './support/enter-world.ts'

export const part: Part = {
  title: 'A hostile queue',
  how:
    'Organisations submit jobs and batches, relays run them, and two processes consume the queues with the platform’s functions. The queues ' +
    'shuffle, hand out 20 % of the messages twice, and 5 % come again seconds after they were handled. In the end all that was counted on the way is counted anew.',
  run: async (effort) => {
    await using _ = await enterWorld()
    const { runMessages } = await import('./queue/all-messages.ts')
    return await runMessages(effort)
  },
}
