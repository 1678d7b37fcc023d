import { startWorld } from '../bench/support/world.ts'
import type { Part } from './part.ts'

export const part: Part = {
  title: 'What the time of an answer tells',
  how:
    'Wrong passwords of somebody and of nobody, and wrong secrets that begin like the right one and that do not, in turns. The figure ' +
    'is the area under the curve: how often the one takes longer than the other, where one half is as good as a coin. What misses ' +
    'its bounds is measured anew, up to three times, and the try is told. On a busy machine less can be seen.',
  run: async (effort) => {
    await import('./timing/hashes.ts')
    await using world = await startWorld()
    Object.assign(process.env, world.environment, { PLAT_LOG_LEVEL: 'error' })
    await import('../test/support/unlimited.ts')
    const { figuresOf } = await import('./timing/run.ts')
    return await figuresOf(effort)
  },
}
