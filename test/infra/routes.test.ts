import { routePaths } from '@platform/contract/index'
import { modulePaths } from '@platform/contract/passage'
import { functionNames } from '@platform/core/updates/function-names'
import { expect, test } from 'vitest'
import { routesOf } from '../simulator/graph/functions.ts'
import { ofType } from '../simulator/graph/graph.ts'
import { byText, deployedFunctions, deployedBy, production } from './stages.ts'

test('the gateway has exactly the routes of the contract, the module routes and a default', () => {
  const expected = [
    ...routePaths.map(([path, name]) => [`ANY ${path}`, name]),
    ...modulePaths.paths.map((path) => [`ANY ${path}`, modulePaths.function]),
    ['$default', 'portal'],
  ]
  const deployedRoutes = routesOf(production).map(({ routeKey, functionName }) => [
    routeKey,
    deployedBy(functionName)?.name,
  ])
  expect(deployedRoutes.toSorted(byText)).toEqual(expected.toSorted(byText))
})

test('every route invokes the alias that updates move', () => {
  expect(new Set(routesOf(production).map(({ alias }) => alias))).toEqual(new Set(['live']))
})

test('the gateway may invoke only functions with routes, by alias', () => {
  const routedFunctions = new Set(routesOf(production).map(({ functionName }) => functionName))
  const permissions = ofType(production, 'aws:lambda/permission:Permission')
    .map(({ inputs }) => inputs)
    .filter(({ principal }) => principal === 'apigateway.amazonaws.com')
  expect(new Set(permissions.map((permission) => permission['function']))).toEqual(routedFunctions)
  for (const { action, qualifier, sourceArn } of permissions) {
    expect({ action, qualifier }).toEqual({ action: 'lambda:InvokeFunction', qualifier: 'live' })
    expect(sourceArn).toMatch(/^arn:aws:execute-api:[a-z0-9-]+:\d{12}:[a-z0-9]+\/\*\/\*$/)
  }
})

test('exactly the functions of the contract are deployed', () => {
  expect(deployedFunctions.map(({ name }) => name).toSorted(byText)).toEqual(functionNames.toSorted(byText))
})
