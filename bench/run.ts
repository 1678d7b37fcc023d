import { type PartName, partNames } from './part-names.ts'
import { newScene, parts, type Scene } from './parts.ts'
import { actionsSeen, metered } from './support/meter.ts'
import { complaint, keep, keepSome, printed } from './support/report.ts'
import { atMost, type Effort, type Goal, type Section } from './support/section.ts'
import { setUp } from './support/tenant.ts'
import type { World } from './support/world.ts'

/** Runs everything, or one part of it, prints each table when it is there, and answers the exit code. */
export async function runBench(world: World, effort: Effort, only?: PartName): Promise<number> {
  const scene = newScene(world, await setUp(), effort)
  const sections: Section[] = []
  for await (const section of measured(scene, only)) {
    console.log(printed(section))
    sections.push(section)
  }
  if (!effort.isQuick) await (only === undefined ? keep : keepSome)(sections)
  const goals: Goal[] = sections.flatMap((section) => section.goals)
  const missed = goals.filter((goal) => !goal.isMet && !('isHope' in goal))
  const met = goals.filter(({ isMet }) => isMet).length
  const hopes = goals.length - met - missed.length
  console.log(`\n${met} of ${goals.length} goals met; ${missed.length} missed, ${hopes} not as hoped.`)
  for (const goal of missed) console.log(complaint(goal))
  return missed.length > 0 ? 1 : 0
}

async function* measured(scene: Scene, only?: PartName): AsyncGenerator<Section> {
  for (const name of only === undefined ? partNames : [only]) {
    const startedAtMs = performance.now()
    yield* parts[name](scene)
    console.log(`\n${name}: ${Math.round((performance.now() - startedAtMs) / 1000)} s`)
  }
  if (only === undefined) yield await scans()
}

/** Whatever ran before, no operation may walk the whole table. */
async function scans(): Promise<Section> {
  // Takes note of what came last.
  await metered(() => Promise.resolve())
  const seen = [...actionsSeen].toSorted()
  return {
    title: 'Actions of the store that were asked for',
    notes: ['By everything above, the floor included.'],
    columns: ['actions'],
    rows: seen.map((action) => [action]),
    goals: [atMost('scans', seen.filter((action) => action === 'Scan').length, 0)],
  }
}
