import { type Task, tasks } from '@platform/contract/task'
import { expect, test } from 'vitest'
import { mappingsOf, schedulesOf } from '../simulator/graph/functions.ts'
import { ofType } from '../simulator/graph/graph.ts'
import { byText, consumers, deployedFunctions, deployedBy, fullGraph, production } from './stages.ts'

const queues = ofType(production, 'aws:sqs/queue:Queue').map(
  ({ inputs, state }) => ({ ...inputs, arn: state['arn'] }) as any,
)
const functionOf = (arn: string) => {
  const [, functionName, alias] = /:function:([^:]+):(.+)$/.exec(arn) ?? []
  return { ...deployedBy(functionName), alias }
}

test('every consumer receives its queue with partial batch responses; those of updates if there is a source', async () => {
  expect(mappingsOf(await fullGraph())).toHaveLength(consumers.length)
  const mappings = mappingsOf(production).map((mapping) => ({
    queue: mapping.eventSourceArn.split(':').at(-1),
    name: functionOf(mapping.functionName).name,
    alias: functionOf(mapping.functionName).alias,
    batchSize: mapping.batchSize,
    responseTypes: mapping.functionResponseTypes,
  }))
  // Without a release source, the queue of updates has no consumer, because AWS charges for polling.
  const connectedConsumers = consumers.filter(({ queue }) => !queue.startsWith('updates'))
  const expected = connectedConsumers.map(({ name, queue, batchSize }) => ({
    queue: `platform-production-${queue}`,
    name,
    alias: 'live',
    batchSize,
    responseTypes: ['ReportBatchItemFailures'],
  }))
  expect(mappings.toSorted((a, b) => (a.name! < b.name! ? -1 : 1))).toEqual(
    expected.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  )
})

test("the visibility timeout is six times the consumer's timeout", () => {
  for (const { eventSourceArn, functionName } of mappingsOf(production)) {
    const queue = queues.find(({ arn }) => arn === eventSourceArn)
    expect(queue.visibilityTimeoutSeconds).toBeGreaterThanOrEqual(
      6 * (functionOf(functionName).timeoutSeconds ?? Infinity),
    )
  }
})

test('a message moves to a dead-letter queue after five failures and is retained for two weeks', () => {
  const workQueues = queues.filter(({ name }) => !name.endsWith('-dead-letter'))
  expect(workQueues).not.toHaveLength(0)
  for (const { name, redrivePolicy } of workQueues) {
    const { deadLetterTargetArn, maxReceiveCount } = JSON.parse(redrivePolicy)
    const deadLetter = queues.find(({ arn }) => arn === deadLetterTargetArn)
    expect({ name: deadLetter?.name, maxReceiveCount }).toEqual({ name: `${name}-dead-letter`, maxReceiveCount: 5 })
    expect(deadLetter.messageRetentionSeconds).toBe(14 * 24 * 3600)
  }
})

test('every schedule of the contract has its interval', () => {
  const schedules = schedulesOf(production).map(({ scheduleExpression, target }) => [
    functionOf(target.arn).name,
    scheduleExpression,
  ])
  const expected = Object.entries<Task>(tasks).flatMap(([name, { trigger }]) => {
    if (typeof trigger !== 'object' || !('everySeconds' in trigger)) return []
    const minutes = trigger.everySeconds / 60
    return [[name, `rate(${minutes} minute${minutes === 1 ? '' : 's'})`]]
  })
  expect(schedules.toSorted(byText)).toEqual(expected.toSorted(byText))
})

test('bootstrap runs after its function and secrets exist', () => {
  const [start, ...others] = ofType(production, 'aws:lambda/invocation:Invocation')
  expect(others).toEqual([])
  expect(start?.inputs).toMatchObject({
    functionName: 'platform-production-fn-bootstrap',
    qualifier: 'live',
    input: '{}',
  })
  const triggers = start?.inputs['triggers'] as object
  expect(Object.keys(triggers).toSorted(byText)).toEqual(deployedFunctions.map(({ name }) => name).toSorted(byText))
})
