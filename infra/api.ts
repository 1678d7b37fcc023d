import { capabilitiesOf } from '../packages/contract/src/endpoint.ts'
import { routePaths, routes } from '../packages/contract/src/index.ts'
import { fallback, modulePaths } from '../packages/contract/src/passage.ts'
import { defaultFunctionTimeoutSeconds } from '../packages/contract/src/task.ts'
import { createPlatformFunction } from './functions.ts'
import { api } from './gateway.ts'

/** Creates the gateway's integration with a function, and permits the gateway to invoke the function's live alias. */

function integrate(name: string, target: ReturnType<typeof createPlatformFunction>) {
  const { id, alias, function: lambda } = target
  const integration = new aws.apigatewayv2.Integration(`${id}Integration`, {
    apiId: api.nodes.api.id,
    integrationType: 'AWS_PROXY',
    integrationUri: alias.invokeArn,
    payloadFormatVersion: '2.0',
    timeoutMilliseconds: 30_000,
  })
  new aws.lambda.Permission(`${id}Permission`, {
    action: 'lambda:InvokeFunction',
    function: lambda.name,
    qualifier: alias.name,
    principal: 'apigateway.amazonaws.com',
    sourceArn: $interpolate`${api.nodes.api.executionArn}/*/*`,
  })
  return { name, target: $interpolate`integrations/${integration.id}` }
}

const functionNames = [...new Set(routes.map((route) => route.function))]

export const apiFunctionNames: readonly string[] = [...functionNames, modulePaths.function, fallback.function]

const integrations = functionNames.map((name) => {
  const ownRoutes = routes.filter((route) => route.function === name)
  const capabilities = [...new Set(ownRoutes.flatMap(({ endpoint }) => capabilitiesOf(endpoint)))]
  return integrate(name, createPlatformFunction(name, { capabilities, timeoutSeconds: defaultFunctionTimeoutSeconds }))
})
const [moduleTarget, fallbackTarget] = [modulePaths, fallback].map(({ function: name, capabilities }) =>
  integrate(name, createPlatformFunction(name, { capabilities, timeoutSeconds: defaultFunctionTimeoutSeconds })),
)
const targetOf = (name: string) => integrations.find((each) => each.name === name)!.target

const createRoute = (routeKey: string, target: $util.Input<string>) =>
  new aws.apigatewayv2.Route(`Route${routeKey.replaceAll(/[^A-Za-z0-9]+/g, '-')}`, {
    apiId: api.nodes.api.id,
    routeKey,
    target,
  })

for (const [path, name] of routePaths) createRoute(`ANY ${path}`, targetOf(name))
for (const path of modulePaths.paths) createRoute(`ANY ${path}`, moduleTarget.target)
createRoute('$default', fallbackTarget.target)
