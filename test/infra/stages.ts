import { type Task, tasks } from '@platform/contract/task'
import { functionNames } from '@platform/core/updates/function-names'
import { functionsOf } from '../simulator/graph/functions.ts'
import { type Graph, ofType } from '../simulator/graph/graph.ts'
import { deployment } from '../support/components.ts'
import { graphOf } from '../support/graphs.ts'

export const { dev, production } = await deployment()

export const deployedFunctions = functionsOf(production, functionNames)

export const deployedBy = (functionName: string | undefined) =>
  deployedFunctions.find((candidate) => candidate.functionName === functionName)

export const inputsOf = (graph: Graph, type: string): any[] => ofType(graph, type).map(({ inputs }) => inputs)

/** The functions that consume a queue, according to the contract. */
export const consumers = Object.entries<Task>(tasks).flatMap(([name, { trigger, capabilities }]) =>
  typeof trigger === 'object' && 'queue' in trigger ? [{ name, capabilities, ...trigger }] : [],
)

export const fullGraph = () =>
  graphOf('production', {
    PLAT_DOMAIN: 'platform.example.com',
    PLAT_ALARM_EMAIL: 'alarms@example.com',
    PLAT_MONITORING: 'full',
    PLAT_FRONT: 'cloudfront',
    PLAT_BUDGET_USD: '50',
    PLAT_CONCURRENCY: '1000',
    PLAT_THROTTLE_PER_SECOND: '2500',
    PLAT_RELEASE_SOURCE: 'registry.example.com/releases',
  })

export const byText = (a: unknown, b: unknown): number => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)
