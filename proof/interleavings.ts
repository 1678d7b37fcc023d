import type { Part } from './part.ts'
import { enterWorld } from './support/enter-world.ts'

export const part: Part = {
  title: 'Interleavings, one store call after another',
  how:
    'The same transitions by two to four callers in one process. Each call to the store is held until every caller has one, and ' +
    'a seeded scheduler picks which is made next: the order of all calls is what differs from one schedule to the next.',
  run: async (effort) => {
    await using _ = await enterWorld()
    const { runScenarios } = await import('./interleavings/all-scenarios.ts')
    return await runScenarios(effort)
  },
}
