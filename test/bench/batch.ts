import * as keys from '@platform/core/db/keys'
import { remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { send, type TestRequest } from '../support/request.ts'
import { metered, storeCallsOf, type Usage } from './support/meter.ts'
import { batchRequest, batchSize, expectSuccess, fillBatch, randomScript, sampleScript } from './support/requests.ts'
import { atMost, type Goal, type Section } from './support/section.ts'
import { handlerFor, newClusters, setUp } from './support/tenant.ts'

export async function* measureBatch(): AsyncGenerator<Section> {
  const { organisationId, accessToken } = await setUp()
  const clusterIds = await newClusters(accessToken, batchSize)
  const [jobs, batches, events] = await Promise.all(['jobs', 'queue/batches', 'queue/events'].map(handlerFor))
  const rows: Section['rows'][number][] = []
  const goals: Goal[] = []
  const record = (name: string, step: string, usage: Usage, limits: Record<string, number>) => {
    const messages = usage.calls['SendMessage'] ?? 0
    const calls = Object.values(usage.calls).reduce((sum, count) => sum + count, 0)
    const unitsPerJob = usage.writeUnits / batchSize
    const values = { calls, 'store calls': storeCallsOf(usage), messages, rounds: usage.rounds, unitsPerJob }
    rows.push([name, step, ...Object.values(values), usage.readUnits, usage.writeUnits])
    for (const [kind, limit] of Object.entries(limits))
      goals.push(atMost(`batch, ${name}, ${step}: ${kind}`, values[kind as keyof typeof values], limit))
  }
  const consume = (handler: (event: object) => Promise<unknown>, body: object) =>
    metered(() => handler({ Records: [{ messageId: 'bench', body: JSON.stringify(body) }] }))

  const kinds = [
    { name: 'same script, 1 cluster', ids: clusterIds.slice(0, 1), script: () => sampleScript, units: 0.15, calls: 20 },
    { name: 'same script, 500 clusters', ids: clusterIds, script: () => sampleScript, units: 0.15, calls: 25 },
    { name: 'random scripts, 500 clusters', ids: clusterIds, script: randomScript, units: 1.5, calls: 25 },
  ]
  for (const { name, ids, script, units, calls } of kinds) {
    const submit = () => send(jobs, batchRequest(accessToken, fillBatch(ids), script))
    expectSuccess(await submit())
    await transact([remove(keys.removalGuard(organisationId))])
    await consume(events, { organisationId })
    const { result, usage } = await metered(submit)
    record(name, 'accept', usage, { calls: 7, rounds: 3, unitsPerJob: units })
    const { batchId } = expectSuccess(result).json
    const expansion = await consume(batches, { organisationId, batchId })
    record(name, 'expand', expansion.usage, { 'store calls': calls, messages: 1 })
    const projectionUsage = await consume(events, { organisationId })
    record(name, 'project', projectionUsage.usage, { messages: 0 })
  }

  const oversizedBatch = batchRequest(accessToken, [...clusterIds, clusterIds[0] ?? ''])
  const invalidRequest = batchRequest(accessToken, clusterIds, () => '')
  for (const [name, request] of Object.entries<TestRequest>({
    '501 jobs': oversizedBatch,
    'invalid scripts': invalidRequest,
  })) {
    const { result, usage } = await metered(() => send(jobs, request))
    if (result.status !== 400) throw new Error(`${name}: responded ${result.status}.`)
    record(name, 'reject', usage, { 'store calls': 0 })
  }
  yield {
    title: `A batch of ${batchSize} jobs`,
    columns: 'batch,step,calls,store calls,messages,rounds,write units per job,read units,write units'.split(','),
    rows,
    goals,
  }
}
