import { started } from '../../test/support/world.ts'
import { type Effort, type Figure } from '../part.ts'
import { quietly } from '../support/quietly.ts'
import { batches, events, jobs } from './lines.ts'
import { modulesAt, updates, webhooksTo } from './outer-lines.ts'
import { type Outside } from './outside.ts'
import { kinds, type Trial, tryAll } from './trial.ts'

/** Every place among ten. */
const whole: Trial = { kinds, positions: Array.from({ length: 10 }, (_, position) => position) }
const short: Trial = { kinds: ['the store refuses'], positions: [4] }

export async function runPoison(outside: Outside, effort: Effort): Promise<Figure[]> {
  await started()
  const lines = [jobs, batches, updates, events, webhooksTo(outside), modulesAt(outside)]
  // Whoever fails a message says so in the log, many hundred times.
  return quietly(async () => {
    const figures: Figure[] = []
    for (const line of lines) {
      const trial = effort.isShort ? { ...short, ...(line === jobs && { kinds }) } : whole
      figures.push(...(await tryAll(line, trial, effort)))
    }
    return figures
  })
}
