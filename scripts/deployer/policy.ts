import { CliError } from '@platform/cli/exit'
import type { Graph } from '../../test/simulator/graph/graph.ts'
import { ownPermissions, type Permission, permissionsOf } from './permissions.ts'

export interface Policy {
  Version: '2012-10-17'
  Statement: Statement[]
}

interface Statement {
  Effect: 'Allow'
  Action: string[]
  Resource: string[]
  Condition?: Record<string, Record<string, string | readonly string[]>>
}

/** The limit of IAM for a managed policy, in characters without white space. */
export const maxPolicyLength = 6144

const withPartition = (resource: string): string => (resource === '*' ? '*' : `arn:*:${resource}`)

const prefixOf = ({ app }: Graph, stage: string): string => `${app.name}-${stage}`

/**
 * Returns only the permissions that the deployment of a graph needs, split into policies that each fit IAM's size
 * limit. Throws `CliError` for an unknown resource type.
 */
export function deployerPolicies(graph: Graph, stage: string): Policy[] {
  const types = [...new Set(graph.resources.map(({ type }) => type))].filter((type) => !type.startsWith('sst:'))
  const unknownTypes = types.filter((type) => permissionsOf[type] === undefined)
  if (unknownTypes.length > 0) {
    throw new CliError('usage', `scripts/deployer/permissions.ts has no permissions for: ${unknownTypes.join(', ')}`)
  }
  const permissions = [...ownPermissions, ...types.toSorted().flatMap((type) => permissionsOf[type] ?? [])]
  return pack(merge(permissions, prefixOf(graph, stage)))
}

/** Merges statements with the same resources and conditions. */
function merge(permissions: readonly Permission[], prefix: string): Statement[] {
  const statements = new Map<string, Statement>()
  for (const { actions, resources, condition } of permissions) {
    const Resource = resources(prefix).map(withPartition)
    const Condition = condition?.(prefix)
    const key = JSON.stringify([Resource, Condition])
    const Action = [...new Set([...(statements.get(key)?.Action ?? []), ...actions])].toSorted()
    statements.set(key, { Effect: 'Allow', Action, Resource, ...(Condition && { Condition }) })
  }
  return [...statements.values()]
}

const policyOf = (Statement: Statement[]): Policy => ({ Version: '2012-10-17', Statement })

function pack(statements: readonly Statement[]): Policy[] {
  const policies: Policy[] = []
  for (const statement of statements) {
    const policy = policies.at(-1)
    const longer = policyOf([...(policy?.Statement ?? []), statement])
    if (policy !== undefined && JSON.stringify(longer).length <= maxPolicyLength) policy.Statement.push(statement)
    else policies.push(policyOf([statement]))
  }
  return policies
}
