import { missingPrograms } from '../../support/installed-programs.ts'
import { startRunning } from '../one-machine/running.ts'
import type { Effort, Section } from '../support/section.ts'
import { range, spread } from '../support/statistics.ts'
import { install, uninstall } from './installing.ts'
import { emptyMegabytes, type Memory, memoryOf } from './memory.ts'

/** How long until the reference module runs, and what it occupies then, by what keeps it apart. */
export async function measureInstall({ isQuick }: Effort): Promise<Section> {
  const runs = isQuick ? 1 : 5
  const isolations = missingPrograms('runc') === '' ? ['process', 'container'] : ['process']
  const rows: Section['rows'] = [['node -e, idle', '', '', '', '', await emptyMegabytes(), '']]
  for (const isolation of isolations) rows.push(rowOf(isolation, await measured(isolation, runs)))
  return {
    title: 'One machine: installing a module',
    columns: ['isolation', 'first, p50 ms', 'max', 'again, p50 ms', 'max', 'module, MB', 'its runc, MB'],
    rows,
    goals: [],
  }
}

interface Measured {
  firstMs: number[]
  againMs: number[]
  memory: Memory[]
}

async function measured(isolation: string, runs: number): Promise<Measured> {
  const all: Measured = { firstMs: [], againMs: [], memory: [] }
  for (const _ of range(runs)) {
    await using platform = await startRunning({ PLAT_MODULE_ISOLATION: isolation })
    all.firstMs.push(await install(platform))
    all.memory.push(await memoryOf(platform))
    await uninstall(platform)
    all.againMs.push(await install(platform))
  }
  return all
}

function rowOf(isolation: string, { firstMs, againMs, memory }: Measured) {
  const [first, again] = [spread(firstMs), spread(againMs)]
  const moduleMegabytes = spread(memory.map((each) => each.moduleMegabytes)).median
  const runcMegabytes = spread(memory.map((each) => each.runcMegabytes)).median
  return [isolation, first.median, first.max, again.median, again.max, moduleMegabytes, runcMegabytes]
}
