import { parsePath } from '@platform/local/registry/names'
import { parseReference } from '@platform/oci/reference'
import { arn } from '../graph/answers.ts'
import type { RequiredPermission } from '../graph/policy.ts'

type Json = Record<string, any>

const tableArn = (name: string, index?: string): string =>
  arn('dynamodb', `table/${name}${index === undefined ? '' : `/index/${index}`}`)

const transactActions: Record<string, string> = {
  Put: 'PutItem',
  Update: 'UpdateItem',
  Delete: 'DeleteItem',
  ConditionCheck: 'ConditionCheckItem',
  Get: 'GetItem',
}

/** A transaction requires the permission of each of its operations. */
function ofDynamoDb(action: string, { TableName, IndexName, RequestItems, TransactItems }: Json): RequiredPermission[] {
  if (action.startsWith('Transact')) {
    const items: Json[] = TransactItems
    const operations = items.flatMap((item) => Object.entries<Json>(item))
    return operations.map(([kind, { TableName: name }]) => ({
      action: `dynamodb:${transactActions[kind]}`,
      resource: tableArn(name),
    }))
  }
  const tables: string[] = action.startsWith('Batch') ? Object.keys(RequestItems) : [TableName]
  return tables.map((name) => ({ action: `dynamodb:${action}`, resource: tableArn(name, IndexName) }))
}

const ofSqs = (action: string, { QueueUrl = '' }: Json): RequiredPermission[] => [
  // A batch requires the permission of a single message.
  { action: `sqs:${action.replace(/Batch$/, '')}`, resource: arn('sqs', queueNameOf(QueueUrl)) },
]

export const queueNameOf = (url: string): string => url.split('/').at(-1) ?? ''

/** Secrets Manager appends a hyphen and six random characters to the ARN of a secret. */
const ofSecrets = (action: string, { SecretId, Name }: Json): RequiredPermission[] => [
  { action: `secretsmanager:${action}`, resource: arn('secretsmanager', `secret:${SecretId ?? Name}-AbCdEf`) },
]

const ofRepository = (name: string, actions: readonly string[]): RequiredPermission[] =>
  actions.map((action) => ({ action: `ecr:${action}`, resource: arn('ecr', `repository/${name}`) }))

/** A registry login has no resource. */
const ofEcr = (action: string, { repositoryName }: Json): RequiredPermission[] =>
  action === 'GetAuthorizationToken'
    ? [{ action: `ecr:${action}`, resource: '*' }]
    : ofRepository(repositoryName, [action])

/** Registry request → the IAM actions that it requires. */
const imageActions: Readonly<Record<string, readonly string[]>> = {
  'GET manifest': ['BatchGetImage'],
  'HEAD manifest': ['BatchGetImage'],
  'PUT manifest': ['PutImage'],
  'DELETE manifest': ['BatchDeleteImage'],
  'GET tags': ['ListImages'],
  'HEAD blob': ['BatchCheckLayerAvailability'],
  'GET blob': ['GetDownloadUrlForLayer'],
  'POST uploads': ['InitiateLayerUpload'],
  'PATCH upload': ['UploadLayerPart'],
  'PUT upload': ['UploadLayerPart', 'CompleteLayerUpload'],
}

export function registryPermissions(
  method: string,
  url: string,
): { repository: string; permissions: RequiredPermission[] } | undefined {
  const target = parsePath(url.split('?', 1)[0] ?? '')
  if (target === undefined || !('repository' in target)) return undefined
  const actions = imageActions[`${method} ${target.kind}`]
  return actions && { repository: target.repository, permissions: ofRepository(target.repository, actions) }
}

/** Creating or updating a function with an image requires permission to read the image and its repository policy. */
function ofCode(uri: unknown): RequiredPermission[] {
  const reference = typeof uri === 'string' ? parseReference(uri) : undefined
  if (reference === undefined) return []
  return ofRepository(reference.repository, ['GetRepositoryPolicy', 'BatchGetImage', 'GetDownloadUrlForLayer'])
}

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
  ['GET', /^\/functions\/([^/]+)\/aliases\/[^/]+$/, 'GetAlias'],
  ['PUT', /^\/functions\/([^/]+)\/aliases\/[^/]+$/, 'UpdateAlias'],
]

const tagActions: Readonly<Record<string, string>> = { GET: 'ListTags', POST: 'TagResource', DELETE: 'UntagResource' }

function ofSettings(action: string, resource: string, { Role, Code, ImageUri, Tags }: Json): RequiredPermission[] {
  return [
    { action: `lambda:${action}`, resource },
    ...(Role === undefined ? [] : [{ action: 'iam:PassRole', resource: String(Role) }]),
    ...(Tags === undefined ? [] : [{ action: 'lambda:TagResource', resource }]),
    ...ofCode(ImageUri ?? Code?.ImageUri),
  ]
}

export function lambdaPermissions(method: string, target: string, input: Json): RequiredPermission[] {
  const { pathname, searchParams } = new URL(target, 'http://lambda')
  const path = pathname.replace(/^\/\d{4}-\d\d-\d\d/, '')
  for (const [actionMethod, pattern, action] of lambdaActions) {
    const match = actionMethod === method ? pattern.exec(path) : null
    if (match === null) continue
    if (action === 'ListFunctions') return [{ action: 'lambda:ListFunctions', resource: '*' }]
    const address: string = decodeURIComponent(match[1] ?? String(input['FunctionName']))
    const name = /:function:(.+)$/.exec(address)?.[1] ?? address
    const qualifier = searchParams.get('Qualifier')
    const resource = arn('lambda', `function:${name}${qualifier === null ? '' : `:${qualifier}`}`)
    return ofSettings(action, resource, input)
  }
  const tagAction = path.startsWith('/tags/') ? tagActions[method] : undefined
  if (tagAction !== undefined) {
    return [{ action: `lambda:${tagAction}`, resource: decodeURIComponent(path.slice('/tags/'.length)) }]
  }
  return [{ action: `lambda:unknown ${method} ${path}`, resource: '*' }]
}

export function iotPermissions(method: string, url: string): RequiredPermission[] {
  const [, topic] = (method === 'POST' && /^\/topics\/([^?]+)/.exec(url)) || []
  const action = topic === undefined ? `iot:unknown ${method} ${url}` : 'iot:Publish'
  return [{ action, resource: arn('iot', `topic/${decodeURIComponent(topic ?? '')}`) }]
}

const services: Record<string, (action: string, input: Json) => RequiredPermission[]> = {
  DynamoDB_20120810: ofDynamoDb,
  AmazonSQS: ofSqs,
  secretsmanager: ofSecrets,
  AmazonEC2ContainerRegistry_V20150921: ofEcr,
}

export const signerOf = (authorization = ''): string => /Credential=([^/,\s]+)\//.exec(authorization)?.[1] ?? ''

/** Returns the permissions that a request requires. The service names the action in `X-Amz-Target`. */
export function targetPermissions(target: string, input: Json): RequiredPermission[] {
  const [service = '', action = ''] = target.split('.')
  return services[service]?.(action, input) ?? [{ action: target, resource: '*' }]
}
