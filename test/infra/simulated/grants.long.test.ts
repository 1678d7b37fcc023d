import { functionNames } from '@platform/core/updates/function-names'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { grantsOf, unusedActions } from '../grant.ts'
import { type Environment, startEnvironment } from './grants/environment.ts'
import { moduleGrants, releaseGrants, unusedGrants } from './grants/exceptions.ts'
import { journeys } from './grants/journeys.ts'

/** Least privilege: the roles allow all calls of the journeys, and have no unused grants except the listed ones. */

let environment: Environment
beforeAll(async () => {
  environment = await startEnvironment()
})
afterAll(() => environment[Symbol.asyncDispose]())

test.each(Object.entries(journeys))('the roles allow %s', async (_, journey) => {
  await journey(environment)
  expect(environment.simulator.cloud.iamProxy.denials).toEqual([])
})

test.each(functionNames)('the role of %s has no unused grant', (name) => {
  const grants = grantsOf(environment.simulator, name)
  const exceptions = [moduleGrants, releaseGrants].flatMap((suite) => suite[name] ?? [])
  exceptions.push(...Object.keys(unusedGrants[name] ?? {}))
  expect(exceptions.filter((grant) => !grants.has(grant))).toEqual([])
  expect([...grants].filter(([grant, used]) => used.size === 0 && !exceptions.includes(grant))).toEqual([])
})

test('no capability for table, queues or secrets names an unused action', () => {
  expect(
    unusedActions(environment.simulator, /^(table|queue:(?!modules|updates)|secret:(?!module-key)|messages)/),
  ).toEqual([])
})
