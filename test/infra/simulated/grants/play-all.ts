import { setTimeout as delay } from 'node:timers/promises'
import { isLong } from '../../../support/long.ts'
import { inLanes } from './lanes.ts'
import { type Stage } from './stage.ts'
import {
  type Act,
  calm,
  isMissed,
  type Need,
  type Outcome,
  playAlone,
  played,
  playWithout,
  type Scene,
} from './withholding.ts'

const laneCount = 3

/** Plays every act: with all grants, without each that is needed for it, and, where all is tried, once they are given back. */
export async function playAll(stage: Stage, needs: readonly Need[]): Promise<Outcome[]> {
  const scenes = await Promise.all(Array.from({ length: laneCount }, stage.newScene))
  for (const { platform } of scenes) await Promise.all([platform.admin, platform.tenant])
  const [first] = scenes as [Scene, ...Scene[]]
  const acts = [...new Set(needs.map(({ act }) => act))]
  const touched = new Map<Act, ReadonlySet<string>>()
  for (const act of acts) touched.set(act, await touchesOf(first, act))
  const run = <Item>(item: Item, act: Act, broken: readonly string[]) => ({
    item,
    touches: new Set([calm, ...(touched.get(act) ?? [])]),
    // Journeys of others may be those of the administrator, too.
    breaks: new Set([...broken, ...(act.breaks ?? []), ...(act.isAlone ? [calm] : [])]),
  })
  const beside = await inLanes(
    scenes,
    needs.map((need) => run(need, need.act, [need.name])),
    playWithout,
  )
  const outcomes: Outcome[] = []
  for (const outcome of beside) outcomes.push(isMissed(outcome) ? outcome : await playAlone(first, outcome))
  if (!isLong) return outcomes
  await healing(first, () =>
    inLanes(
      scenes,
      acts.map((act) => run(act, act, [])),
      passing,
    ),
  )
  return outcomes
}

/** Plays an act with all grants. Answers the functions that have asked for something meanwhile. */
async function touchesOf(scene: Scene, act: Act): Promise<ReadonlySet<string>> {
  if (act.touches !== undefined) return new Set(act.touches)
  const { asked } = scene.simulator.cloud.gate
  const before = new Map(asked)
  await passing(scene, act)
  return new Set([...asked.keys()].filter((name) => asked.get(name) !== before.get(name)))
}

async function passing(scene: Scene, act: Act): Promise<void> {
  const failure = await played(scene, { ...act, play: act.again ?? act.play })
  if (failure !== undefined) throw new Error(`"${act.title}" fails with all grants: ${failure}`)
}

/** The sweep runs meanwhile, as its clock would: what got stuck goes on. */
async function healing<Result>(scene: Scene, work: () => Promise<Result>): Promise<Result> {
  const over = new AbortController()
  const sweeping = (async () => {
    while (!over.signal.aborted) {
      await scene.tick('schedule/sweep')
      await delay(1000, undefined, { signal: over.signal }).catch(() => undefined)
    }
  })()
  try {
    return await work()
  } finally {
    over.abort()
    await sweeping
  }
}
