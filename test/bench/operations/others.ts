import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildAssets } from '@platform/local/assets'
import { actionsSeen } from '../support/meter.ts'
import type { Section } from '../support/section.ts'
import { startWorld } from '../support/world.ts'
import { otherBudgets } from './budgets.ts'
import { countColumns, countGoals, countRow } from './count.ts'
import type { Others } from './fixtures.ts'

const program = new URL('others-process.ts', import.meta.url)
/** All that functions hand out but the portal. */
const wants = ['openapi.json', 'docs.html', 'relay.mjs', 'event-catalog.json', 'module-schema.json']

/** What all other operations ask of the store: in a process and over a world of their own, which is not yet set up. */
export async function countOthers(): Promise<Section> {
  const { counts } = await others()
  for (const { usage } of counts) for (const action of Object.keys(usage.calls)) actionsSeen.add(action)
  return {
    title: 'What the other operations cost',
    columns: countColumns,
    rows: counts.map(countRow),
    goals: countGoals(counts, otherBudgets),
  }
}

async function others(): Promise<Others> {
  const assets = await mkdtemp(join(tmpdir(), 'platform-bench-'))
  await buildAssets(assets, { names: wants })
  await using world = await startWorld()
  const child = fork(program, {
    env: { ...process.env, ...world.environment, PLAT_ASSETS_DIR: assets },
    execArgv: [],
  })
  try {
    const [told]: (Others | number)[] = await Promise.race([once(child, 'message'), once(child, 'exit')])
    if (typeof told !== 'object') throw new Error('The other operations could not be counted.')
    return told
  } finally {
    child.kill()
    await rm(assets, { recursive: true })
  }
}
