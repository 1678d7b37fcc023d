import { tasks } from '@platform/contract/task'
import { expect, test } from 'vitest'
import { reservedConcurrencyOf, functionsWithReservation } from '../../infra/concurrency.ts'
import { canLoop } from '../../infra/recursion.ts'
import { isLong } from '../support/long.ts'
import { programs } from './metrics.ts'
import {
  byText,
  consumers,
  deployedFunctions,
  deployedBy,
  dev,
  fullGraph,
  inputsOf as inputsIn,
  production,
} from './stages.ts'

const inputsOf = (type: string) => inputsIn(production, type)

test('only functions that hash passwords have a full processor', async () => {
  const hashingNames = [...(await programs())].filter(([, code]) => code.includes('argon2id')).map(([name]) => name)
  // Bootstrap is not large: it hashes a password only when an operator resets one.
  const largeFunctions = deployedFunctions.filter(({ memoryMb }) => memoryMb >= 1769).map(({ name }) => name)
  expect(largeFunctions.toSorted(byText)).toEqual(['auth', 'setup', 'users'])
  expect(hashingNames.toSorted(byText)).toEqual([...largeFunctions, 'bootstrap'].toSorted(byText))
  for (const { memoryMb } of deployedFunctions) expect(memoryMb).toBeGreaterThanOrEqual(512)
})

test.runIf(isLong)('sign-in, relays and health have concurrency of their own if the account has enough', async () => {
  const reservations = (graph: typeof dev) =>
    inputsIn(graph, 'aws:lambda/function:Function').flatMap(({ name, reservedConcurrentExecutions: reserved }) =>
      reserved === undefined ? [] : [`${name} ${reserved}`],
    )
  expect(reservations(production)).toEqual([])
  const expected = ['auth 100', 'health 10', 'relay 300'].map((each) => `platform-production-fn-${each}`)
  expect(reservations(await fullGraph()).toSorted(byText)).toEqual(expected)
  for (const unreserved of [10, 100, 499]) expect(reservedConcurrencyOf('relay', unreserved)).toBeUndefined()
  for (const unreserved of [500, 1000]) {
    const reservedSum = functionsWithReservation.reduce(
      (sum, name) => sum + (reservedConcurrencyOf(name, unreserved) ?? 0),
      0,
    )
    expect(unreserved - reservedSum).toBeGreaterThanOrEqual(100)
  }
})

const queuesOf = (capabilities: readonly string[]) =>
  capabilities.filter((use) => use.startsWith('queue:')).map((use) => use.slice('queue:'.length))

test('recursion is allowed only for consumers whose messages lead back to them', () => {
  const configs = inputsOf('aws:lambda/functionRecursionConfig:FunctionRecursionConfig')
  expect(new Set(configs.map(({ recursiveLoop }) => recursiveLoop))).toEqual(new Set(['Allow']))
  // Independent of the code of the deployment, which follows consumers instead of queues.
  const reachable = (queues: ReadonlySet<string>): ReadonlySet<string> => {
    const next = consumers
      .filter(({ queue }) => queues.has(queue))
      .flatMap(({ capabilities }) => queuesOf(capabilities))
    const extended = new Set([...queues, ...next])
    return extended.size === queues.size ? queues : reachable(extended)
  }
  const looping = consumers
    .filter(({ queue, capabilities }) => reachable(new Set(queuesOf(capabilities))).has(queue))
    .map(({ name }) => name)
  expect(looping).toContain('queue/events')
  expect(looping.length).toBeLessThan(consumers.length)
  const names = configs.map(({ functionName }) => deployedBy(functionName)?.name)
  expect(names.toSorted(byText)).toEqual(looping.toSorted(byText))
  expect(Object.keys(tasks).filter(canLoop).toSorted(byText)).toEqual(looping.toSorted(byText))
})

test('scheduled functions are not retried', () => {
  const configs = inputsOf('aws:lambda/functionEventInvokeConfig:FunctionEventInvokeConfig')
  const schedules = inputsOf('aws:scheduler/schedule:Schedule')
  const scheduledNames = schedules.map(({ target }) => /:function:([^:]+):live$/.exec(target.arn)?.[1])
  expect(configs.map(({ functionName }) => functionName).toSorted(byText)).toEqual(scheduledNames.toSorted(byText))
  for (const { qualifier, maximumRetryAttempts } of configs)
    expect([qualifier, maximumRetryAttempts]).toEqual(['live', 0])
  for (const { target } of schedules) expect(target.retryPolicy).toEqual({ maximumRetryAttempts: 0 })
})

test('Lambda logs only failed invocations and traces none', () => {
  for (const inputs of inputsOf('aws:lambda/function:Function')) {
    // The platform applies PLAT_LOG_LEVEL itself.
    const levels = { systemLogLevel: 'WARN', applicationLogLevel: 'TRACE' }
    expect(inputs.loggingConfig).toMatchObject({ logFormat: 'JSON', ...levels })
    expect(inputs.loggingConfig.logGroup).toBe(`/aws/lambda/${inputs.name}`)
    expect(inputs.tracingConfig).toBeUndefined()
  }
})

test('modules may only write to a log group with the usual retention', () => {
  const role = inputsOf('aws:iam/role:Role').find(({ name }) => name === 'platform-production-use1-module')
  const [{ policy }] = role.inlinePolicies
  const group = '/aws/lambda/platform-production-mod'
  expect(JSON.parse(policy).Statement).toEqual([
    {
      Effect: 'Allow',
      Action: ['logs:CreateLogStream', 'logs:PutLogEvents'],
      Resource: [expect.stringMatching(new RegExp(`:log-group:${group}:\\*$`))],
    },
  ])
  expect(role.managedPolicyArns ?? []).toEqual([])
  expect(deployedFunctions[0]?.environment['PLAT_MODULE_LOG_GROUP']).toBe(group)
  expect(inputsOf('aws:cloudwatch/logGroup:LogGroup').find(({ name }) => name === group)).toBeDefined()
})

test("modules' images are copied to this account's registry", () => {
  expect(deployedFunctions[0]?.environment['PLAT_MODULE_REPOSITORY']).toBe(
    '000000000000.dkr.ecr.us-east-1.amazonaws.com/platform-production/modules',
  )
})

test("the gateway's log has neither paths nor query strings", () => {
  const [{ accessLogSettings, defaultRouteSettings }] = inputsOf('aws:apigatewayv2/stage:Stage')
  const fields = JSON.parse(accessLogSettings.format)
  expect(Object.values(fields).filter((field) => !/^\$context\.[A-Za-z.]+$/.test(String(field)))).toEqual([])
  expect(Object.values(fields).filter((field) => /path|query|header|authorizer/i.test(String(field)))).toEqual([])
  expect(fields).toMatchObject({ route: '$context.routeKey', status: '$context.status' })
  expect(accessLogSettings.destinationArn).toMatch(/^arn:aws:logs:/)
  // AWS would charge the metrics of each route separately.
  expect(defaultRouteSettings).toMatchObject({ detailedMetricsEnabled: false, throttlingRateLimit: 5000 })
})

test('the API allows no other origins', () => {
  for (const { corsConfiguration } of inputsOf('aws:apigatewayv2/api:Api')) expect(corsConfiguration).toEqual({})
})

test('schedules run only on behalf of this account', () => {
  const role = inputsOf('aws:iam/role:Role').find(({ name }) => name === 'platform-production-use1-clock')
  expect(JSON.parse(role.assumeRolePolicy).Statement[0].Condition).toEqual({
    StringEquals: { 'aws:SourceAccount': '000000000000' },
  })
})

test('every resource is tagged with its stage', () => {
  for (const [graph, stage] of [
    [dev, 'dev'],
    [production, 'production'],
  ] as const) {
    expect(graph.app.providers['aws']).toMatchObject({ defaultTags: { tags: { Platform: 'platform', Stage: stage } } })
  }
})
