import * as z from 'zod'
import { type Graph, ofType } from './graph.ts'
import { parsePolicy, type Statement } from './policy.ts'

export interface DeployedFunction {
  /** Name in the contract, such as `queue/batches`. */
  name: string
  functionName: string
  timeoutSeconds: number
  memoryMb: number
  environment: Record<string, string>
  role: string
  statements: readonly Statement[]
  alias: string
}

const FunctionInputs = z.object({
  name: z.string(),
  timeout: z.number(),
  memorySize: z.number(),
  role: z.string(),
  environment: z.object({ variables: z.record(z.string(), z.string()) }),
})
const RoleInputs = z.object({
  inlinePolicies: z.array(z.object({ policy: z.string() })).default([]),
  managedPolicyArns: z.array(z.never()).default([]),
})

export function functionsOf(graph: Graph, names: readonly string[]): DeployedFunction[] {
  const aliases = new Map(
    ofType(graph, 'aws:lambda/alias:Alias').map(({ inputs }) => [inputs['functionName'], String(inputs['name'])]),
  )
  const roles = new Map(ofType(graph, 'aws:iam/role:Role').map(({ state, inputs }) => [state['arn'], inputs]))
  return ofType(graph, 'aws:lambda/function:Function').map(({ inputs }) => {
    const { name: functionName, timeout, memorySize, role, environment } = FunctionInputs.parse(inputs)
    const name = names.find((each) => functionName.endsWith(`-fn-${each.replaceAll('/', '-')}`))
    if (name === undefined) throw new Error(`${functionName} is not a function of the platform.`)
    const { inlinePolicies } = RoleInputs.parse(roles.get(role))
    const statements = inlinePolicies.flatMap(({ policy }) => parsePolicy(policy))
    const alias = aliases.get(functionName) ?? ''
    const settings = { timeoutSeconds: timeout, memoryMb: memorySize, environment: environment.variables }
    return { name, functionName, ...settings, role, statements, alias }
  })
}

const RouteInputs = z.object({ routeKey: z.string(), target: z.string() })
const IntegrationInputs = z.object({ integrationUri: z.string() })

export function routesOf(graph: Graph): { routeKey: string; functionName: string; alias: string }[] {
  const integrations = new Map(
    ofType(graph, 'aws:apigatewayv2/integration:Integration').map(({ name, inputs }) => [
      `integrations/${name}-id`,
      IntegrationInputs.parse(inputs).integrationUri,
    ]),
  )
  return ofType(graph, 'aws:apigatewayv2/route:Route').map(({ inputs }) => {
    const { routeKey, target } = RouteInputs.parse(inputs)
    const [, functionName = '', alias = ''] = /:function:([^:/]+):([^:/]+)\//.exec(integrations.get(target) ?? '') ?? []
    return { routeKey, functionName, alias }
  })
}

const MappingInputs = z.object({
  eventSourceArn: z.string(),
  functionName: z.string(),
  batchSize: z.number(),
  functionResponseTypes: z.array(z.string()).default([]),
  scalingConfig: z.object({ maximumConcurrency: z.number() }),
})

export const mappingsOf = (graph: Graph): z.infer<typeof MappingInputs>[] =>
  ofType(graph, 'aws:lambda/eventSourceMapping:EventSourceMapping').map(({ inputs }) => MappingInputs.parse(inputs))

const ScheduleInputs = z.object({
  name: z.string(),
  scheduleExpression: z.string(),
  target: z.object({ arn: z.string(), roleArn: z.string() }),
})

export const schedulesOf = (graph: Graph): z.infer<typeof ScheduleInputs>[] =>
  ofType(graph, 'aws:scheduler/schedule:Schedule').map(({ inputs }) => ScheduleInputs.parse(inputs))
