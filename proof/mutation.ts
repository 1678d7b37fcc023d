import { type Area, areas, sample } from './mutation/areas.ts'
import { mutate } from './mutation/run.ts'
import { type Effort, type Figure, type Part } from './part.ts'

/** In percent, of each area. */
const goal = 85

async function figureOf({ name, groups }: Area, say: Effort['say']): Promise<Figure> {
  let [noticed, total] = [0, 0]
  for (const group of groups) {
    say(`${name}: ${group.mutate.join(' ')}`)
    const outcome = await mutate(group)
    for (const line of outcome.unnoticed) say(`not noticed: ${line}`)
    noticed += outcome.noticed
    total += outcome.total
  }
  const percent = (100 * noticed) / total
  return {
    claim: `mutants of ${name} that a test notices`,
    goal: `≥ ${goal} %`,
    seen: `${noticed} of ${total}, ${percent.toFixed(1)} %`,
    isMet: percent >= goal,
  }
}

export const part: Part = {
  title: 'Tests that can fail',
  how:
    'Stryker changes the code that decides, one little thing at a time: a condition, a text, a number, a block that is left out. For each ' +
    'such mutant the tests run that come by it; one of them has to fail. What makes no difference to anybody is counted as not noticed, too.',
  run: async ({ isShort, say }) => {
    const figures: Figure[] = []
    for (const area of isShort ? [sample] : areas) figures.push(await figureOf(area, say))
    return figures
  },
}
