import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { DynamoDBClient, ScanCommand } from '@aws-sdk/client-dynamodb'
import { graphOf } from '../../simulator/graph/graph.ts'
import { tableName } from '../support/emulators.ts'
import { deploymentOf } from './deployment.ts'
import { startEnvironment } from './environment.ts'
import type { FlowCost, Units } from './model.ts'
import type { Cost } from './recorder.ts'

const storedClusters = 10

export async function measureUnits(): Promise<void> {
  const deployment = deploymentOf(await graphOf('production'))
  await using environment = await startEnvironment({
    PLAT_LOG_LEVEL: 'info',
    PLAT_METRICS: 'emf',
    AWS_LAMBDA_FUNCTION_NAME: 'platform-production-fn-clusters',
  })
  // Core reads its settings when it is first imported.
  const { config } = await import('@platform/core/config')
  const { batchJobs, newRecordedRelay, recordFlows, measureJobs, recordLongJobs } = await import('./flows.ts')
  const { Recorder } = await import('./recorder.ts')
  const { setUp } = await import('../support/tenant.ts')
  const recorder = new Recorder()
  const tenant = await setUp()
  await recordFlows(recorder, tenant, environment.webhookReceiver.host)
  const emptyTableBytes = await storedBytes()
  for (let index = 0; index < storedClusters; index++) await newRecordedRelay(recorder, tenant.accessToken)
  const bytesWithClusters = await storedBytes()
  const relays = await measureJobs(recorder, tenant)
  const cluster = (bytesWithClusters - emptyTableBytes) / storedClusters
  const batchJob = ((await storedBytes()) - bytesWithClusters) / batchJobs - cluster
  await recordLongJobs(recorder, tenant, relays)
  const units: Units = {
    measuredAt: new Date().toISOString().slice(0, 10),
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim(),
    heartbeatSeconds: config.PLAT_HEARTBEAT_INTERVAL_SECONDS,
    deployment,
    storage: { cluster: Math.round(cluster), batchJob: Math.round(batchJob) },
    flows: flowsOf(recorder.costs),
  }
  await writeFile(new URL('units.json', import.meta.url), `${JSON.stringify(units, null, 2)}\n`)
}

/** Returns the costs of flows, without those of single operations, whose names start with a method. */
function flowsOf(costs: ReadonlyMap<string, Cost>): Record<string, FlowCost> {
  const flows = [...costs].filter(([name]) => !/^[A-Z]+ \//.test(name))
  return Object.fromEntries(flows.map(([name, { actions: _actions, ...cost }]) => [name, cost]))
}

/**
 * Returns the bytes that DynamoDB bills for the table and its indexes: the data, and 100 bytes for each item and index
 * entry.
 */
async function storedBytes(): Promise<number> {
  const { itemSize } = await import('@platform/local/emulators/dynamodb/item-size')
  const { tableIndexes } = await import('@platform/core/db/schema')
  const store = new DynamoDBClient()
  let bytes = 0
  let ExclusiveStartKey: any
  do {
    const page = await store.send(new ScanCommand({ TableName: tableName, ExclusiveStartKey }))
    for (const attributes of page.Items ?? []) {
      const item: any = Object.fromEntries(
        Object.entries(attributes).map(([name, value]) => [
          name,
          value.B === undefined ? value : { B: Buffer.from(value.B).toString('base64') },
        ]),
      )
      const indexes = Object.values(tableIndexes).filter((keys) => keys.every((key) => item[key] !== undefined))
      const entries = indexes.map((keys) => Object.fromEntries(['pk', 'sk', ...keys].map((key) => [key, item[key]])))
      for (const entry of [item, ...entries]) bytes += itemSize(entry) + 100
    }
    ExclusiveStartKey = page.LastEvaluatedKey
  } while (ExclusiveStartKey !== undefined)
  store.destroy()
  return bytes
}
