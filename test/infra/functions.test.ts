import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Task, tasks } from '@platform/contract/task'
import { expect, test } from 'vitest'
import { loops } from '../../infra/loops.ts'
import { ofType } from '../simulator/graph/graph.ts'
import { programs } from './metrics.ts'
import { byText, deployed, dev, production } from './stages.ts'

const inputsOf = (type: string) => ofType(production, type).map(({ inputs }) => inputs as any)

test('functions that compute passwords have a whole processor, and no others pay for one', async () => {
  const computing = [...(await programs())].filter(([, code]) => code.includes('argon2id')).map(([name]) => name)
  const wide = deployed.filter(({ memoryMb }) => memoryMb >= 1769).map(({ name }) => name)
  expect(wide.toSorted(byText)).toEqual(['auth', 'setup', 'users'])
  expect(computing.toSorted(byText)).toEqual(wide.toSorted(byText))
  for (const { memoryMb } of deployed) expect(memoryMb).toBeGreaterThanOrEqual(512)
})

test('no function takes concurrency away from the others', () => {
  const reserved = inputsOf('aws:lambda/function:Function').filter(
    (inputs) => inputs.reservedConcurrentExecutions !== undefined,
  )
  expect(reserved).toEqual([])
})

const sent = (uses: readonly string[]) =>
  uses.filter((use) => use.startsWith('queue:')).map((use) => use.slice('queue:'.length))

test('consumers whose messages lead back to them may go round, and nobody else', () => {
  const allowed = inputsOf('aws:lambda/functionRecursionConfig:FunctionRecursionConfig')
  expect(new Set(allowed.map(({ recursiveLoop }) => recursiveLoop))).toEqual(new Set(['Allow']))
  // Found by another way than the deployment finds it: what is sent, followed as long as it leads anywhere new.
  const consumers = Object.entries<Task>(tasks).flatMap(([name, { trigger, uses }]) =>
    typeof trigger === 'object' && 'queue' in trigger ? [{ name, queue: trigger.queue, uses }] : [],
  )
  const followed = (queues: ReadonlySet<string>): ReadonlySet<string> => {
    const next = consumers.filter(({ queue }) => queues.has(queue)).flatMap(({ uses }) => sent(uses))
    const more = new Set([...queues, ...next])
    return more.size === queues.size ? queues : followed(more)
  }
  const wanted = consumers.filter(({ queue, uses }) => followed(new Set(sent(uses))).has(queue)).map(({ name }) => name)
  expect(wanted).toContain('queue/events')
  expect(wanted.length).toBeLessThan(consumers.length)
  const names = allowed.map(({ functionName }) => deployed.find((each) => each.functionName === functionName)?.name)
  expect(names.toSorted(byText)).toEqual(wanted.toSorted(byText))
  expect(Object.keys(tasks).filter(loops).toSorted(byText)).toEqual(wanted.toSorted(byText))
})

test('a clock begins its function once: neither it nor Lambda tries again what the next run makes up for', () => {
  const configs = inputsOf('aws:lambda/functionEventInvokeConfig:FunctionEventInvokeConfig')
  const schedules = inputsOf('aws:scheduler/schedule:Schedule')
  const begun = schedules.map(({ target }) => /:function:([^:]+):live$/.exec(target.arn)?.[1])
  expect(configs.map(({ functionName }) => functionName).toSorted(byText)).toEqual(begun.toSorted(byText))
  for (const { qualifier, maximumRetryAttempts } of configs)
    expect([qualifier, maximumRetryAttempts]).toEqual(['live', 0])
  for (const { target } of schedules) expect(target.retryPolicy).toEqual({ maximumRetryAttempts: 0 })
})

test('Lambda writes of an invocation only what went wrong, and traces none', () => {
  for (const inputs of inputsOf('aws:lambda/function:Function')) {
    expect(inputs.loggingConfig).toMatchObject({ logFormat: 'JSON', systemLogLevel: 'WARN' })
    expect(inputs.loggingConfig.logGroup).toBe(`/aws/lambda/${inputs.name}`)
    expect(inputs.tracingConfig).toBeUndefined()
  }
})

test('modules write into a log that is kept as long as any other, and may do nothing else', () => {
  const role = inputsOf('aws:iam/role:Role').find(({ name }) => name === 'platform-production-module')
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
  expect(deployed[0]?.environment['PLAT_MODULE_LOG_GROUP']).toBe(group)
  expect(inputsOf('aws:cloudwatch/logGroup:LogGroup').find(({ name }) => name === group)).toBeDefined()
})

test("modules' images are copied to this account's own registry", () => {
  expect(deployed[0]?.environment['PLAT_MODULE_REPOSITORY']).toBe(
    '000000000000.dkr.ecr.us-east-1.amazonaws.com/platform-production/modules',
  )
})

test('the log of the gateway holds neither a path nor what stands behind its question mark', () => {
  const [{ accessLogSettings, defaultRouteSettings }] = inputsOf('aws:apigatewayv2/stage:Stage')
  const fields = JSON.parse(accessLogSettings.format)
  expect(Object.values(fields).filter((field) => !/^\$context\.[A-Za-z.]+$/.test(String(field)))).toEqual([])
  expect(Object.values(fields).filter((field) => /path|query|header|authorizer/i.test(String(field)))).toEqual([])
  expect(fields).toMatchObject({ route: '$context.routeKey', status: '$context.status' })
  expect(accessLogSettings.destinationArn).toMatch(/^arn:aws:logs:/)
  // Metrics of 100 routes would be paid for one by one.
  expect(defaultRouteSettings).toMatchObject({ detailedMetricsEnabled: false, throttlingRateLimit: 5000 })
})

test('no browser of another origin may call the API', () => {
  for (const { corsConfiguration } of inputsOf('aws:apigatewayv2/api:Api')) expect(corsConfiguration).toEqual({})
})

test('the clocks are begun in the name of this account alone', () => {
  const role = inputsOf('aws:iam/role:Role').find(({ name }) => name === 'platform-production-clock')
  expect(JSON.parse(role.assumeRolePolicy).Statement[0].Condition).toEqual({
    StringEquals: { 'aws:SourceAccount': '000000000000' },
  })
})

test('everything that is made says which stage it belongs to', () => {
  for (const [graph, stage] of [
    [dev, 'dev'],
    [production, 'production'],
  ] as const) {
    expect(graph.app.providers['aws']).toMatchObject({ defaultTags: { tags: { Platform: 'platform', Stage: stage } } })
  }
})

test('a message rests no longer than its dead letter, so that none is lost on the way', () => {
  for (const { messageRetentionSeconds = 345_600, name } of inputsOf('aws:sqs/queue:Queue')) {
    expect(messageRetentionSeconds, name).toBe(name.endsWith('-dead-letter') ? 1_209_600 : 345_600)
  }
})

test('what the rehearsal unpacks of components is of the version that the configuration names', async () => {
  const root = join(import.meta.dirname, '../..')
  const { devDependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const config = await readFile(join(root, 'sst.config.ts'), 'utf8')
  expect(config).toContain(`version: '${devDependencies.sst}'`)
  const lock = JSON.parse(await readFile(join(root, '.sst/provider-lock.json'), 'utf8'))
  const [{ version }] = lock.filter(({ alias }: { alias: string }) => alias === 'aws')
  expect(config).toContain(`aws: { version: '${version}'`)
})
