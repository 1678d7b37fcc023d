import { localAccountId, localRegion } from '@platform/local/aws-environment'
import { type Demand } from '../graph/policy.ts'

/** What a request to AWS asks for, in terms of roles. */

type Json = Record<string, any>

const arn = (service: string, name: string): string => `arn:aws:${service}:${localRegion}:${localAccountId}:${name}`

const tableArn = (name: string, index?: string): string =>
  arn('dynamodb', `table/${name}${index === undefined ? '' : `/index/${index}`}`)

const transactActions: Record<string, string> = {
  Put: 'PutItem',
  Update: 'UpdateItem',
  Delete: 'DeleteItem',
  ConditionCheck: 'ConditionCheckItem',
  Get: 'GetItem',
}

/** A transaction needs what each of its parts would need alone. */
function ofDynamoDb(action: string, { TableName, IndexName, RequestItems, TransactItems }: Json): Demand[] {
  if (TransactItems !== undefined) {
    const items: Json[] = TransactItems
    const parts = items.flatMap((item) => Object.entries<Json>(item))
    return parts.map(([kind, { TableName: name }]) => ({
      action: `dynamodb:${transactActions[kind]}`,
      resource: tableArn(name),
    }))
  }
  const tables: string[] = RequestItems === undefined ? [TableName] : Object.keys(RequestItems)
  return tables.map((name) => ({ action: `dynamodb:${action}`, resource: tableArn(name, IndexName) }))
}

const ofSqs = (action: string, { QueueUrl = '' }: Json): Demand[] => [
  // A batch is allowed by what allows each of its messages.
  { action: `sqs:${action.replace(/Batch$/, '')}`, resource: arn('sqs', queueNameOf(QueueUrl)) },
]

/** The name of a queue by its address, wherever that is. */
export const queueNameOf = (url: string): string => url.split('/').at(-1) ?? ''

/** Six letters stand behind the name in the ARN of a secret. */
const ofSecrets = (action: string, { SecretId, Name }: Json): Demand[] => [
  { action: `secretsmanager:${action}`, resource: arn('secretsmanager', `secret:${SecretId ?? Name}-AbCdEf`) },
]

const lambdaActions: readonly [method: string, path: RegExp, action: string][] = [
  ['POST', /^\/functions\/?$/, 'CreateFunction'],
  ['GET', /^\/functions\/?$/, 'ListFunctions'],
  ['GET', /^\/functions\/([^/]+)$/, 'GetFunction'],
  ['DELETE', /^\/functions\/([^/]+)$/, 'DeleteFunction'],
  ['GET', /^\/functions\/([^/]+)\/configuration$/, 'GetFunctionConfiguration'],
  ['PUT', /^\/functions\/([^/]+)\/configuration$/, 'UpdateFunctionConfiguration'],
  ['PUT', /^\/functions\/([^/]+)\/code$/, 'UpdateFunctionCode'],
  ['POST', /^\/functions\/([^/]+)\/versions$/, 'PublishVersion'],
  ['GET', /^\/functions\/([^/]+)\/versions$/, 'ListVersionsByFunction'],
  ['POST', /^\/functions\/([^/]+)\/invocations$/, 'InvokeFunction'],
  ['POST', /^\/functions\/([^/]+)\/aliases$/, 'CreateAlias'],
  ['GET', /^\/functions\/([^/]+)\/aliases$/, 'ListAliases'],
  ['GET', /^\/functions\/([^/]+)\/aliases\/[^/]+$/, 'GetAlias'],
  ['PUT', /^\/functions\/([^/]+)\/aliases\/[^/]+$/, 'UpdateAlias'],
]

/** What a request to Lambda's REST interface asks for; a function's role is passed with it. */
export function ofLambda(method: string, target: string, input: Json): Demand[] {
  const { pathname, searchParams } = new URL(target, 'http://lambda')
  const path = pathname.replace(/^\/\d{4}-\d\d-\d\d/, '')
  for (const [needed, pattern, action] of lambdaActions) {
    const match = needed === method ? pattern.exec(path) : null
    if (match === null) continue
    if (action === 'ListFunctions') return [{ action: 'lambda:ListFunctions', resource: '*' }]
    const named: string = decodeURIComponent(match[1] ?? String(input['FunctionName']))
    const name = /:function:(.+)$/.exec(named)?.[1] ?? named
    const qualifier = searchParams.get('Qualifier')
    const resource = arn('lambda', `function:${name}${qualifier === null ? '' : `:${qualifier}`}`)
    const passed = action === 'CreateFunction' ? [{ action: 'iam:PassRole', resource: String(input['Role']) }] : []
    return [{ action: `lambda:${action}`, resource }, ...passed]
  }
  if (path.startsWith('/tags/')) {
    return [{ action: 'lambda:TagResource', resource: decodeURIComponent(path.slice('/tags/'.length)) }]
  }
  return [{ action: `lambda:unknown ${method} ${path}`, resource: '*' }]
}

const services: Record<string, (action: string, input: Json) => Demand[]> = {
  DynamoDB_20120810: ofDynamoDb,
  AmazonSQS: ofSqs,
  secretsmanager: ofSecrets,
}

/** What a request to a service asks for whose actions stand in `X-Amz-Target`. */
export function ofTarget(target: string, input: Json): Demand[] {
  const [service = '', action = ''] = target.split('.')
  return services[service]?.(action, input) ?? [{ action: target, resource: '*' }]
}
