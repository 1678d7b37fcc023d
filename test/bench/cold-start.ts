import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { buildAssets } from '@platform/local/assets'
import { listFunctionNames } from '../../packages/local/src/function-files.ts'
import { bundle } from '../../scripts/bundle.ts'
import { lambdaFlags } from '../simulator/lambda/node-program.ts'
import { startLambda } from '../simulator/lambda/start.ts'
import { type FirstEvent, firstEvents } from './cold-start-events.ts'
import { bundleBare, peerNames } from './support/peers.ts'
import { atMost, type Effort, type Section } from './support/section.ts'
import { range, ratios, shuffled, spread } from './support/statistics.ts'
import { setUp } from './support/tenant.ts'

/**
 * Measures every function as it is deployed: its size, and the time and CPU that a new process uses until its first
 * response.
 */

const root = join(import.meta.dirname, '../..')

interface Start {
  wallMs: number
  cpuMs: number
  residentBytes: number
}

interface Program {
  name: string
  path: string
  bytes: number
  event: FirstEvent
  starts: Start[]
  cachedStarts: Start[]
  limit?: number
}

export async function* measureColdStarts({ isQuick }: Effort): AsyncGenerator<Section> {
  const events = await firstEvents(await setUp())
  const missingNames = (await listFunctionNames(join(root, 'functions'))).filter((name) => !(name in events))
  if (missingNames.length > 0) throw new Error(`cold-start-events.ts has no event for ${missingNames.join(', ')}.`)
  const programs = await buildPrograms(events)
  const lambda = await startLambda()
  try {
    await buildAssets(join(root, 'dist'), { names: ['portal.pack'] })
    const environment = {
      PLAT_ASSETS_DIR: join(root, 'dist'),
      PLAT_MODULE_RUNTIME: 'lambda',
      PLAT_MODULE_REGISTRY: 'ecr',
      PLAT_MODULE_REPOSITORY: '123456789012.dkr.ecr.eu-central-1.amazonaws.com/platform',
      PLAT_UPDATE_TARGET: 'lambda-alias',
      AWS_ENDPOINT_URL_LAMBDA: lambda.url,
    }
    await startAll(programs, environment, isQuick ? 2 : 12)
  } finally {
    await lambda.close()
  }
  yield sectionFor(programs)
}

/** A bare handler with the AWS clients that most functions have. */
const baselineProgram = `import { SQSClient } from '@aws-sdk/client-sqs'
export const queue = new SQSClient()
export { handler } from './get-cluster.ts'`

/**
 * Maximum ratio of CPU to the baseline (default 1.3) for functions that also call Lambda or Secrets Manager before
 * their first response.
 */
const limits: Readonly<Record<string, number>> = {
  'schedule/heartbeat': 1.5,
  'schedule/catalog': 1.4,
  'schedule/updates': 1.4,
  updates: 1.4,
}

async function buildPrograms(events: Record<string, FirstEvent>): Promise<[Program, ...Program[]]> {
  const event = events['clusters'] ?? (async () => ({}))
  const bare = async (name: string, source: string): Promise<Program> => {
    return { ...(await bundleBare(source, name)), name, event, starts: [], cachedStarts: [] }
  }
  const baseline = await bare('baseline', baselineProgram)
  const programs: Program[] = []
  for (const name of peerNames) programs.push(await bare(name, `export * from '../peers/${name}.ts'`))
  for (const [name, ownEvent] of Object.entries(events)) {
    const { path, files, initial } = await bundle(name)
    const bytes = initial.reduce((sum, file) => sum + (files.get(file)?.length ?? 0), 0)
    programs.push({ name, path, bytes, event: ownEvent, starts: [], cachedStarts: [], limit: limits[name] ?? 1.3 })
  }
  return [baseline, ...programs]
}

/** Starts all programs in random order in each round. The first round fills the caches and does not count. */
async function startAll(programs: readonly Program[], environment: Record<string, string>, rounds: number) {
  const cache = await mkdtemp(join(tmpdir(), 'platform-bench-'))
  try {
    for (const round of range(rounds + 1)) {
      for (const program of shuffled(programs)) {
        const start = await startOnce(program, environment)
        const cachedStart = await startOnce(program, { ...environment, NODE_COMPILE_CACHE: cache })
        if (round === 0) continue
        program.starts.push(start)
        program.cachedStarts.push(cachedStart)
      }
    }
  } finally {
    await rm(cache, { recursive: true, force: true })
  }
}

/** Functions whose expected first response is an error: setup is complete, and no module serves the path. */
const expectedErrors: Readonly<Record<string, string>> = { setup: '403', 'gateway/modules': '404' }

/**
 * Starts a program in a new process with one event. Throws if the program ends without a response or reports an
 * unexpected error.
 */
async function startOnce({ name, path, event }: Program, environment: Record<string, string>): Promise<Start> {
  const driver = join(import.meta.dirname, 'cold-start-driver.mjs')
  const text = JSON.stringify(await event())
  const startedAtMs = performance.now()
  const child = spawn(process.execPath, [...lambdaFlags, driver, path, text], {
    env: { ...process.env, PLAT_LOG_LEVEL: 'info', ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exit = once(child, 'exit')
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    const [, status, cpuMicroseconds, bytes] = /\nstatus (\d+) cpu (\d+) rss (\d+)\n/.exec(chunk) ?? []
    if (status === undefined) continue
    const wallMs = performance.now() - startedAtMs
    if (Number(status) >= 300 && status !== expectedErrors[name]) throw new Error(`${name} responded ${status}.`)
    await exit
    return { wallMs, cpuMs: Number(cpuMicroseconds) / 1000, residentBytes: Number(bytes) }
  }
  throw new Error(`${name} did not respond.`)
}

function sectionFor([baseline, ...others]: readonly [Program, ...Program[]]): Section {
  const cpu = (starts: readonly Start[]) => starts.map(({ cpuMs }) => cpuMs)
  const memory = (starts: readonly Start[]) => starts.map(({ residentBytes }) => residentBytes / 1e6)
  const measured = [baseline, ...others].map(({ name, bytes, starts, cachedStarts, limit }) => ({
    name,
    kib: bytes / 1024,
    wallMs: spread(starts.map(({ wallMs }) => wallMs)).median,
    cpuMs: spread(cpu(starts)).median,
    cpuRatio: ratios(cpu(starts), cpu(baseline.starts)),
    cachedRatio: ratios(cpu(cachedStarts), cpu(baseline.starts)).median,
    megabytes: spread(memory(starts)).median,
    memoryRatio: ratios(memory(starts), memory(baseline.starts)).median,
    limit,
  }))
  return {
    title: 'Functions as deployed, until the first response',
    columns: ['program', 'KiB', 'ms', 'CPU ms', '× baseline', 'min', 'max', 'with cache', 'MB', '× baseline'],
    rows: measured.map(({ name, kib, wallMs, cpuMs, cpuRatio: { median, min, max }, ...rest }) => {
      const { cachedRatio, megabytes, memoryRatio } = rest
      return [name, kib, wallMs, cpuMs, median, min, max, cachedRatio, megabytes, memoryRatio]
    }),
    goals: measured.flatMap(({ name, kib, cpuRatio, cachedRatio, memoryRatio, limit }) =>
      limit === undefined
        ? []
        : [
            atMost(`${name}: KiB`, kib, 560),
            atMost(`${name}: CPU, × baseline`, cpuRatio.median, limit),
            atMost(`${name}: CPU with a compile cache, × baseline`, cachedRatio, limit - 0.15),
            atMost(`${name}: memory, × baseline`, memoryRatio, 1.1),
          ],
    ),
  }
}
