import type { Statement } from '../simulator/graph/policy.ts'

/** Identifies what a statement of a role is for. */

/** Grant → an action and resource pattern that no other grant has. */
const signs: readonly [grant: string, action: string, resource: RegExp][] = [
  ['table:read', 'dynamodb:GetItem', /:table\//],
  ['table:write', 'dynamodb:PutItem', /:table\//],
  ['messages', 'sqs:ReceiveMessage', /:sqs:/],
  ['secret:signing-keys', 'secretsmanager:GetSecretValue', /\/signing-keys-\w+$/],
  ['secret:signing-keys-write', 'secretsmanager:PutSecretValue', /\/signing-keys-\w+$/],
  ['secret:initial-admin-token', 'secretsmanager:GetSecretValue', /\/initial-admin-token-\w+$/],
  ['secret:initial-admin-token-write', 'secretsmanager:PutSecretValue', /\/initial-admin-token-\w+$/],
  ['secret:registries', 'secretsmanager:GetSecretValue', /\/registries-\w+$/],
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
  ['functions:update', 'lambda:UpdateFunctionCode', /-fn-\*$/],
  ['functions:revert', 'lambda:UpdateAlias', /-fn-\*$/],
]

/** Throws for an unknown statement. */
export function grantOf({ Action, Resource }: Statement): string {
  const [resource = ''] = Resource
  const queue = /:sqs:.*-(\w+)$/.exec(resource)?.[1]
  if (Action.includes('sqs:SendMessage') && queue !== undefined) return `queue:${queue}`
  const found = signs.filter(([, action, pattern]) => Action.includes(action) && pattern.test(resource))
  const [[grant] = []] = found
  if (grant === undefined || found.length > 1)
    throw new Error(`Nobody knows what ${Action.join()} on ${resource} is for.`)
  return grant
}

/** Undefined for the grant of a queue consumer. */
export const capabilityOf = (grant: string): string | undefined =>
  grant === 'messages' ? undefined : grant.replace(/ \(.*$/, '')
