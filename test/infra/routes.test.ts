import { capabilitiesOf } from '@platform/contract/endpoint'
import { routes } from '@platform/contract/index'
import { modulePaths } from '@platform/contract/passage'
import { functionNames } from '@platform/core/updates/function-names'
import { expect, test } from 'vitest'
import { routesOf } from '../simulator/graph/functions.ts'
import { ofType } from '../simulator/graph/graph.ts'
import { byText, deployed, production } from './stages.ts'

const nameOf = (functionName: string) => deployed.find((each) => each.functionName === functionName)?.name

test('the gateway has exactly the routes of the contract, the module routes and a default', () => {
  const wanted = [
    ...routes.map((route) => [`${route.method} ${route.endpoint.path}`, route.function]),
    ...modulePaths.paths.map((path) => [`ANY ${path}`, modulePaths.function]),
    ['$default', 'portal'],
  ]
  const found = routesOf(production).map(({ routeKey, functionName }) => [routeKey, nameOf(functionName)])
  expect(found.toSorted(byText)).toEqual(wanted.toSorted(byText))
})

test('every route invokes the alias that updates move', () => {
  expect(new Set(routesOf(production).map(({ alias }) => alias))).toEqual(new Set(['live']))
})

test('the gateway may invoke only functions with routes, by alias', () => {
  const routed = new Set(routesOf(production).map(({ functionName }) => functionName))
  const permitted = ofType(production, 'aws:lambda/permission:Permission').map(({ inputs }) => inputs)
  expect(new Set(permitted.map((permission) => permission['function']))).toEqual(routed)
  for (const { action, qualifier, principal, sourceArn } of permitted) {
    expect({ action, qualifier, principal }).toEqual({
      action: 'lambda:InvokeFunction',
      qualifier: 'live',
      principal: 'apigateway.amazonaws.com',
    })
    expect(sourceArn).toMatch(/^arn:aws:execute-api:[a-z0-9-]+:\d{12}:[a-z0-9]+\/\*\/\*$/)
  }
})

test('exactly the functions of the contract are deployed', () => {
  expect(deployed.map(({ name }) => name).toSorted(byText)).toEqual(functionNames.toSorted(byText))
})

test.each(deployed.filter(({ name }) => routes.some((route) => route.function === name)))(
  'the capabilities of $name are those of its routes',
  ({ name, statements }) => {
    const capabilities = new Set(
      routes.filter((route) => route.function === name).flatMap(({ endpoint }) => capabilitiesOf(endpoint)),
    )
    const actions = new Set(statements.flatMap(({ Action }) => Action))
    expect(actions.has('dynamodb:GetItem')).toBe(capabilities.has('table:read'))
    expect(actions.has('dynamodb:PutItem')).toBe(capabilities.has('table:write'))
    const queues = statements
      .filter(({ Action }) => Action.includes('sqs:SendMessage'))
      .flatMap(({ Resource }) => Resource)
    const named = [...capabilities]
      .filter((each) => each.startsWith('queue:'))
      .map((each) => each.slice('queue:'.length))
    expect(queues.map((arn) => arn.split('-').at(-1)).toSorted(byText)).toEqual(named.toSorted(byText))
  },
)
