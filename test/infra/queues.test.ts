import { type Task, tasks } from '@platform/contract/task'
import { expect, test } from 'vitest'
import { mappingsOf, schedulesOf } from '../simulator/graph/functions.ts'
import { ofType } from '../simulator/graph/graph.ts'
import { byText, deployed, production } from './stages.ts'

const queues = ofType(production, 'aws:sqs/queue:Queue').map(
  ({ inputs, state }) => ({ ...inputs, arn: state['arn'] }) as any,
)
const functionOf = (arn: string) => {
  const [, functionName, alias] = /:function:([^:]+):(.+)$/.exec(arn) ?? []
  return { ...deployed.find((each) => each.functionName === functionName), alias }
}
const consumed = Object.entries<Task>(tasks).flatMap(([name, { trigger }]) =>
  typeof trigger === 'object' && 'queue' in trigger ? [{ name, ...trigger }] : [],
)

test('every consumer of the contract gets the messages of its queue, and answers for each of them', () => {
  const found = mappingsOf(production).map((mapping) => ({
    queue: mapping.eventSourceArn.split(':').at(-1),
    name: functionOf(mapping.functionName).name,
    alias: functionOf(mapping.functionName).alias,
    batchSize: mapping.batchSize,
    answers: mapping.functionResponseTypes,
  }))
  const wanted = consumed.map(({ name, queue, batchSize }) => ({
    queue: `platform-production-${queue}`,
    name,
    alias: 'live',
    batchSize,
    answers: ['ReportBatchItemFailures'],
  }))
  expect(found.toSorted((a, b) => (a.name! < b.name! ? -1 : 1))).toEqual(
    wanted.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  )
})

test('a message stays hidden for six times what its consumer may take', () => {
  for (const { eventSourceArn, functionName } of mappingsOf(production)) {
    const queue = queues.find(({ arn }) => arn === eventSourceArn)
    expect(queue.visibilityTimeoutSeconds).toBeGreaterThanOrEqual(
      6 * (functionOf(functionName).timeoutSeconds ?? Infinity),
    )
  }
})

test('a message that fails five times goes to a dead-letter queue of its own, which keeps it for two weeks', () => {
  const work = queues.filter(({ name }) => !name.endsWith('-dead-letter'))
  expect(work).not.toHaveLength(0)
  for (const { name, redrivePolicy } of work) {
    const { deadLetterTargetArn, maxReceiveCount } = JSON.parse(redrivePolicy)
    const deadLetter = queues.find(({ arn }) => arn === deadLetterTargetArn)
    expect({ name: deadLetter?.name, maxReceiveCount }).toEqual({ name: `${name}-dead-letter`, maxReceiveCount: 5 })
    expect(deadLetter.messageRetentionSeconds).toBe(14 * 24 * 3600)
  }
})

test('every clock of the contract ticks as often as the contract says', () => {
  const found = schedulesOf(production).map(({ scheduleExpression, target }) => [
    functionOf(target.arn).name,
    scheduleExpression,
  ])
  const wanted = Object.entries<Task>(tasks).flatMap(([name, { trigger }]) => {
    if (typeof trigger !== 'object' || !('everySeconds' in trigger)) return []
    const minutes = trigger.everySeconds / 60
    return [[name, `rate(${minutes} minute${minutes === 1 ? '' : 's'})`]]
  })
  expect(found.toSorted(byText)).toEqual(wanted.toSorted(byText))
})

test('the deployment begins the platform once its function and its secrets are there', () => {
  const [start, ...others] = ofType(production, 'aws:lambda/invocation:Invocation')
  expect(others).toEqual([])
  expect(start?.inputs).toMatchObject({
    functionName: 'platform-production-fn-bootstrap',
    qualifier: 'live',
    input: '{}',
  })
  const triggers = start?.inputs['triggers'] as object
  expect(Object.keys(triggers).toSorted(byText)).toEqual(deployed.map(({ name }) => name).toSorted(byText))
})
