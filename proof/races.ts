import type { Part } from './part.ts'
import { enterWorld } from './support/enter-world.ts'

export const part: Part = {
  title: 'Races between four processes',
  how:
    'Callers in four processes, each with functions of its own, do at the same moment against one store what only one of them may do: ' +
    'complete setup, use a refresh token, enroll a relay, remove a cluster that others submit to. What they are answered and what stands in the table is counted.',
  run: async (effort) => {
    await using _ = await enterWorld()
    const { runRaces } = await import('./races/all-races.ts')
    return await runRaces(effort)
  },
}
