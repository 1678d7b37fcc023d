import type { Part } from './part.ts'
import { startOutside } from './poison/outside.ts'
import { enterWorld } from './support/enter-world.ts'

export const part: Part = {
  title: 'Poisoned messages',
  how:
    'Ten messages come at once, and one of them cannot be handled: at each of the ten places, of each kind, in each queue. It comes again ' +
    'until its queue buries it after five receives; the function of the dead-letter queue takes it from there.',
  run: async (effort) => {
    await using outside = await startOutside()
    await using _ = await enterWorld(outside.settings)
    const { runPoison } = await import('./poison/all-lines.ts')
    return await runPoison(outside, effort)
  },
}
