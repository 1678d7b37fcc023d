import { capabilitiesOf } from '@platform/contract/endpoint'
import { routes } from '@platform/contract/index'
import { modulePaths } from '@platform/contract/passage'
import { functionNames } from '@platform/core/updates/function-names'
import { expect, test } from 'vitest'
import { routesOf } from '../simulator/graph/functions.ts'
import { ofType } from '../simulator/graph/graph.ts'
import { byText, deployed, production } from './stages.ts'

const nameOf = (functionName: string) => deployed.find((each) => each.functionName === functionName)?.name

test('the gateway has every route of the contract, what leads to modules, a default, and nothing else', () => {
  const wanted = [
    ...routes.map((route) => [`${route.endpoint.method} ${route.endpoint.path}`, route.function]),
    ...modulePaths.paths.map((path) => [`ANY ${path}`, modulePaths.function]),
    ['$default', 'portal'],
  ]
  const found = routesOf(production).map(({ routeKey, functionName }) => [routeKey, nameOf(functionName)])
  expect(found.toSorted(byText)).toEqual(wanted.toSorted(byText))
})

test('every route leads to the alias that updates move', () => {
  expect(new Set(routesOf(production).map(({ alias }) => alias))).toEqual(new Set(['live']))
})

test('the gateway may call each function that it has a route to, by its alias, and no other', () => {
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

test('every function of the contract is deployed, and nothing else', () => {
  expect(deployed.map(({ name }) => name).toSorted(byText)).toEqual(functionNames.toSorted(byText))
})

test.each(deployed.filter(({ name }) => routes.some((route) => route.function === name)))(
  'what $name needs of the store and the queues is what its routes name',
  ({ name, statements }) => {
    const uses = new Set(
      routes.filter((route) => route.function === name).flatMap(({ endpoint }) => capabilitiesOf(endpoint)),
    )
    const actions = new Set(statements.flatMap(({ Action }) => Action))
    expect(actions.has('dynamodb:GetItem')).toBe(uses.has('table:read'))
    expect(actions.has('dynamodb:PutItem')).toBe(uses.has('table:write'))
    const queues = statements
      .filter(({ Action }) => Action.includes('sqs:SendMessage'))
      .flatMap(({ Resource }) => Resource)
    const named = [...uses].filter((each) => each.startsWith('queue:')).map((each) => each.slice('queue:'.length))
    expect(queues.map((arn) => arn.split('-').at(-1)).toSorted(byText)).toEqual(named.toSorted(byText))
  },
)
