import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import packageFile from '../../../package.json' with { type: 'json' }
import { atMost, type Effort, hope, type Section } from '../support/section.ts'
import { range, ratios, spread } from '../support/statistics.ts'

const root = join(import.meta.dirname, '../../..')

/** How long the whole platform takes to start on this machine, with no data yet. */
export async function measureStart({ isQuick }: Effort): Promise<Section> {
  const platformMs: number[] = []
  const emptyMs: number[] = []
  for (const _ of range(isQuick ? 2 : 5)) {
    emptyMs.push(await emptyProcessMs())
    platformMs.push(await startMs())
  }
  const ratio = ratios(platformMs, emptyMs)
  return {
    title: 'One machine: the start',
    columns: ['program', 'ms', 'ratio, median', 'min', 'max'],
    rows: [
      ['node -e 0', spread(emptyMs).median, 1, '', ''],
      ['npm start', spread(platformMs).median, ratio.median, ratio.min, ratio.max],
    ],
    goals: [hope(atMost('start of the platform, × node -e 0', ratio.median, 50))],
  }
}

async function emptyProcessMs(): Promise<number> {
  const startedAtMs = performance.now()
  await once(spawn(process.execPath, ['-e', '0']), 'exit')
  return performance.now() - startedAtMs
}

async function startMs(): Promise<number> {
  const dataDir = await mkdtemp(join(tmpdir(), 'platform-bench-'))
  const startedAtMs = performance.now()
  const child = spawn('sh', ['-c', packageFile.scripts.start], {
    cwd: root,
    env: { PATH: process.env['PATH'], PLAT_PORT: '0', PLAT_DATA_DIR: dataDir },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exit = once(child, 'exit')
  try {
    for await (const chunk of child.stdout.setEncoding('utf8')) {
      if (chunk.includes('Platform ready at')) return performance.now() - startedAtMs
    }
    throw new Error('The platform did not start.')
  } finally {
    child.kill()
    await exit
    await rm(dataDir, { recursive: true, force: true })
  }
}
