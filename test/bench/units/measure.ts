import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { startWorld } from '../support/world.ts'
import { graphOf } from '../../simulator/graph/graph.ts'
import { deploymentOf } from './deployment.ts'
import type { Flow } from './call.ts'
import { holdOutput } from './output.ts'

/** Where the measured units are kept, for `npm run cost`. */
const unitsFile = new URL('../cost/units.json', import.meta.url)

const batchSize = 500

/** Counts what everything takes, on the stand-ins and as the deployment sets the functions up, and keeps that as JSON. */
export async function measureUnits(): Promise<void> {
  const deployment = deploymentOf(await graphOf('production'))
  await using world = await startWorld()
  const { registry } = await import('../modules/registry.ts')
  await using _ = registry
  const { startReceiver } = await import('./receiver.ts')
  await using receiver = await startReceiver()
  Object.assign(process.env, world.environment, registry.settings, {
    PLAT_LOG_LEVEL: 'info',
    PLAT_METRICS: 'emf',
    PLAT_OUTBOUND_ALLOW: receiver.host,
    AWS_LAMBDA_FUNCTION_NAME: 'platform-production-fn-clusters',
  })
  // Settings are read when core is first imported: from here on.
  const { config } = await import('@platform/core/config')
  const { allFlows } = await import('./all-flows.ts')
  const output = holdOutput()
  const { flows, storage } = await allFlows(receiver.host, batchSize).finally(output.release)
  const units = {
    measuredAt: new Date().toISOString().slice(0, 10),
    commit: commit(),
    node: process.version,
    heartbeatSeconds: config.PLAT_HEARTBEAT_INTERVAL_SECONDS,
    batchSize,
    deployment,
    storage,
    flows: Object.fromEntries(Object.entries(flows).map(([name, { flow, per }]) => [name, { per, ...plain(flow) }])),
  }
  await writeFile(unitsFile, `${JSON.stringify(units, null, 2)}\n`)
}

const commit = (): string => {
  const head = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
  const changes = execFileSync('git', ['status', '--porcelain', 'packages', 'functions', 'infra'], { encoding: 'utf8' })
  return changes.trim() === '' ? head : `${head} with changes`
}

const plain = ({ taken, functions, metrics }: Flow) => ({
  ...taken,
  functions,
  metrics: [...metrics].toSorted(),
})
