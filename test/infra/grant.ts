import type { Statement } from '../simulator/graph/policy.ts'
import type { Simulator } from '../simulator/simulator.ts'

/** Grant → an action and a resource pattern that only this grant has. */
const definitions: readonly [grant: string, action: string, resource: RegExp][] = [
  ['table:read', 'dynamodb:GetItem', /:table\//],
  ['table:write', 'dynamodb:PutItem', /:table\//],
  ['messages', 'sqs:ReceiveMessage', /:sqs:/],
  ['logs', 'logs:PutLogEvents', /:log-group:/],
  ['secret:access-keys', 'secretsmanager:GetSecretValue', /\/access-keys-\w+$/],
  ['secret:module-token-keys', 'secretsmanager:GetSecretValue', /\/module-token-keys-\w+$/],
  ['secret:statement-keys', 'secretsmanager:GetSecretValue', /\/statement-keys-\w+$/],
  ['secret:webhook-key', 'secretsmanager:GetSecretValue', /\/webhook-key-\w+$/],
  ['secret:module-key', 'secretsmanager:GetSecretValue', /\/module-key-\w+$/],
  ['secret:audit-key', 'secretsmanager:GetSecretValue', /\/audit-key-\w+$/],
  ['audit:checkpoints', 's3:PutObject', /:s3:::/],
  [
    'secret:keys-write',
    'secretsmanager:PutSecretValue',
    /\/(?:access-keys|module-token-keys|statement-keys|webhook-key|module-key)-\w+$/,
  ],
  ['secret:initial-admin-token', 'secretsmanager:GetSecretValue', /\/initial-admin-token-\w+$/],
  ['secret:initial-admin-token-write', 'secretsmanager:PutSecretValue', /\/initial-admin-token-\w+$/],
  ['secret:registries', 'secretsmanager:GetSecretValue', /\/registries-\*$/],
  ['secret:identity', 'secretsmanager:GetSecretValue', /\/identity\/\*$/],
  ['secret:identity-write', 'secretsmanager:CreateSecret', /\/identity\/\*$/],
  ['secret:identity-remove', 'secretsmanager:DeleteSecret', /\/identity\/\*$/],
  ['modules:deploy', 'lambda:CreateFunction', /-mod-\*$/],
  ['modules:deploy (role)', 'iam:PassRole', /-module$/],
  ['modules:deploy (images)', 'ecr:PutImage', /\/modules\/\*$/],
  ['modules:deploy (registry)', 'ecr:GetAuthorizationToken', /^\*$/],
  ['modules:remove', 'lambda:DeleteFunction', /-mod-\*$/],
  ['modules:remove (list)', 'lambda:ListFunctions', /^\*$/],
  ['modules:remove (images)', 'ecr:DeleteRepository', /\/modules\/\*$/],
  ['modules:invoke', 'lambda:InvokeFunction', /-mod-\*$/],
  ['channel:wake', 'iot:Publish', /:topic\/[^/]+\/clusters\/\*$/],
  ['functions:update', 'lambda:UpdateFunctionCode', /-fn-\*$/],
  ['functions:revert', 'lambda:UpdateAlias', /-fn-\*$/],
]

export function grantOf({ Action, Resource }: Statement): string {
  const [resource = ''] = Resource
  const queue = /:sqs:.*-(\w+)$/.exec(resource)?.[1]
  if (Action.includes('sqs:SendMessage') && queue !== undefined) return `queue:${queue}`
  const matches = definitions.filter(([, action, pattern]) => Action.includes(action) && pattern.test(resource))
  const [[grant] = []] = matches
  if (grant === undefined || matches.length > 1) throw new Error(`Unknown grant: ${Action.join()} on ${resource}`)
  return grant
}

/** Returns the capability in the contract that requires a grant; undefined for the right to receive from a queue. */
export const capabilityOf = (grant: string): string | undefined =>
  grant === 'messages' ? undefined : grant.replace(/ \(.*$/, '')

const statementsOf = ({ functions }: Simulator, name: string): readonly Statement[] =>
  functions.find((each) => each.name === name)?.statements ?? []

export function statementOf(simulator: Simulator, name: string, grant: string): Statement {
  const statement = statementsOf(simulator, name).find((each) => grantOf(each) === grant)
  if (statement === undefined) throw new Error(`${name} has no grant ${grant}.`)
  return statement
}

/** Returns grant → actions that the function has used, without the grant for logs, which Lambda itself uses. */
export const grantsOf = (simulator: Simulator, name: string): Map<string, ReadonlySet<string>> =>
  new Map(
    statementsOf(simulator, name)
      .filter((each) => grantOf(each) !== 'logs')
      .map((each) => [grantOf(each), simulator.cloud.iamProxy.used.get(each) ?? new Set()]),
  )

export const usedActions = (simulator: Simulator, name: string, grant: string): ReadonlySet<string> =>
  simulator.cloud.iamProxy.used.get(statementOf(simulator, name, grant)) ?? new Set()

/** Lambda requires this action of consumers when a queue is connected. */
const actionsOfAws = new Set(['sqs:GetQueueAttributes'])

/** Returns the listed grants that their functions have not used. */
export const unusedGrantsOf = (simulator: Simulator, listed: Record<string, readonly string[]>): string[] =>
  Object.entries(listed).flatMap(([name, grants]) =>
    grants.filter((grant) => usedActions(simulator, name, grant).size === 0).map((grant) => `${name} ${grant}`),
  )

/** Returns the actions of matching grants that no function has used, such as `table:write dynamodb:DeleteItem`. */
export function unusedActions({ functions, cloud }: Simulator, pattern: RegExp): string[] {
  const [grantedActions, usedGrantActions] = [new Set<string>(), new Set<string>()]
  for (const statement of functions.flatMap(({ statements }) => statements)) {
    const grant = grantOf(statement)
    if (!pattern.test(grant)) continue
    for (const action of statement.Action) grantedActions.add(`${grant} ${action}`)
    for (const action of cloud.iamProxy.used.get(statement) ?? []) usedGrantActions.add(`${grant} ${action}`)
  }
  return [...grantedActions].filter(
    (each) => !usedGrantActions.has(each) && !actionsOfAws.has(each.split(' ').at(-1) ?? ''),
  )
}
