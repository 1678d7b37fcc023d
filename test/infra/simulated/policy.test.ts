import { expect, test } from 'vitest'
import { allowing, parsePolicy } from '../../simulator/graph/policy.ts'

const statement = (change: object = {}) => ({
  Effect: 'Allow',
  Action: ['dynamodb:GetItem'],
  Resource: ['arn:aws:dynamodb:us-east-1:000000000000:table/one'],
  ...change,
})
const policyOf = (...statements: object[]) => JSON.stringify({ Version: '2012-10-17', Statement: statements })

test.each([
  ['denies', { Effect: 'Deny' }],
  ['depends on a condition', { Condition: { StringEquals: { 'aws:SourceAccount': '000000000000' } } }],
  ['names what it does not mean', { NotResource: ['*'] }],
  ['names somebody', { Principal: '*' }],
  ['is written in another way', { Action: 'dynamodb:*' }],
])('a statement that %s is not understood as one that allows', (_, change) => {
  expect(parsePolicy(policyOf(statement()))).toEqual([statement()])
  expect(() => parsePolicy(policyOf(statement(), statement(change)))).toThrow()
})

const arn = (name: string) => `arn:aws:sqs:us-east-1:000000000000:${name}`

test.each([
  ['as it is', ['sqs:SendMessage'], [arn('jobs')], true],
  ['another action', ['sqs:ReceiveMessage'], [arn('jobs')], false],
  ['an action that only begins so', ['sqs:Send'], [arn('jobs')], false],
  ['a resource that only begins so', ['sqs:SendMessage'], [arn('job')], false],
  ['a resource that only ends so', ['sqs:SendMessage'], ['jobs'], false],
  ['one of several', ['sqs:ReceiveMessage', 'sqs:SendMessage'], [arn('events'), arn('jobs')], true],
  ['a star at the end', ['sqs:*'], [arn('*')], true],
  ['a star in between', ['sqs:Send*'], ['arn:aws:sqs:*:jobs'], true],
  ['a question mark, which is one character', ['sqs:SendMessage'], [arn('job?')], true],
  ['a question mark where there is none', ['sqs:SendMessage'], [arn('jobs?')], false],
  ['a star for something else', ['sqs:*'], ['arn:aws:sns:*'], false],
  ['a dot, which stands for itself', ['sqs:SendMessage'], ['arn.aws.sqs.us-east-1.000000000000.jobs'], false],
])('what is asked for, against %s', (_, Action, Resource, isAllowed) => {
  const one = { Effect: 'Allow' as const, Action, Resource }
  const demand = { action: 'sqs:SendMessage', resource: arn('jobs') }
  expect(allowing([one], demand)).toBe(isAllowed ? one : undefined)
})

test('action and resource have to stand in the same statement', () => {
  const action = { Effect: 'Allow' as const, Action: ['sqs:SendMessage'], Resource: [arn('events')] }
  const resource = { Effect: 'Allow' as const, Action: ['sqs:ReceiveMessage'], Resource: [arn('jobs')] }
  expect(allowing([action, resource], { action: 'sqs:SendMessage', resource: arn('jobs') })).toBeUndefined()
})
