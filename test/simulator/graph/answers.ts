import { localAccountId, localRegion } from '@platform/local/emulators/http/environment'

const [region, account] = [localRegion, localAccountId]

export interface ProviderCall {
  type: string
  name: string
  inputs: Record<string, unknown>
}

export const arn = (service: string, name: string) => `arn:aws:${service}:${region}:${account}:${name}`

/** Resource type → function that computes the attributes that AWS assigns at creation. `name` is the physical name. */
const computedAttributes: Record<string, (name: string, inputs: ProviderCall['inputs']) => Record<string, unknown>> = {
  'aws:dynamodb/table:Table': (name) => ({ arn: arn('dynamodb', `table/${name}`) }),
  'aws:sqs/queue:Queue': (name) => ({
    arn: arn('sqs', name),
    url: `https://sqs.${region}.amazonaws.com/${account}/${name}`,
  }),
  'aws:lambda/function:Function': (name) => ({
    ...functionArns(name),
    version: '1',
    qualifiedArn: arn('lambda', `function:${name}:1`),
  }),
  'aws:lambda/alias:Alias': (name, { functionName }) => functionArns(`${String(functionName)}:${name}`),
  'aws:iam/role:Role': (name) => ({ arn: `arn:aws:iam::${account}:role/${name}` }),
  'aws:secretsmanager/secret:Secret': (name) => ({ arn: arn('secretsmanager', `secret:${name}-AbCdEf`) }),
  'aws:sns/topic:Topic': (name) => ({ arn: arn('sns', name) }),
  'aws:cloudwatch/logGroup:LogGroup': (name) => ({ arn: arn('logs', `log-group:${name}`) }),
  'aws:apigatewayv2/api:Api': () => ({
    apiEndpoint: `https://simulator.execute-api.${region}.amazonaws.com`,
    executionArn: arn('execute-api', 'simulator'),
  }),
  'aws:iot/authorizer:Authorizer': (name) => ({ arn: arn('iot', `authorizer/${name}`) }),
  'aws:iot/topicRule:TopicRule': (name) => ({ arn: arn('iot', `rule/${name}`) }),
  'aws:wafv2/webAcl:WebAcl': (name) => ({ arn: `arn:aws:wafv2:${region}:${account}:global/webacl/${name}/1` }),
  'aws:cloudfront/distribution:Distribution': () => ({ domainName: 'd1.cloudfront.net', hostedZoneId: 'Z3' }),
  'aws:scheduler/schedule:Schedule': (name) => ({ arn: arn('scheduler', `schedule/default/${name}`) }),
  'aws:apigatewayv2/domainName:DomainName': (_, { domainName }) => ({
    id: domainName,
    domainNameConfiguration: { targetDomainName: `d-1.execute-api.${region}.amazonaws.com`, hostedZoneId: 'Z1' },
  }),
  'aws:acm/certificate:Certificate': (name, { domainName }) => ({
    arn: arn('acm', `certificate/${name}`),
    domainValidationOptions: [
      {
        domainName,
        resourceRecordName: `_validation.${String(domainName)}.`,
        resourceRecordType: 'CNAME',
        resourceRecordValue: '_validation.acm-validations.aws.',
      },
    ],
  }),
  // SST looks up the hosted zone of a domain.
  'pulumi-nodejs:dynamic:Resource': () => ({ zoneId: 'Z2' }),
  'random:index/randomBytes:RandomBytes': () => ({ base64: Buffer.alloc(32, 7).toString('base64') }),
}

const functionArns = (name: string) => {
  const functionArn = arn('lambda', `function:${name}`)
  return {
    arn: functionArn,
    invokeArn: `arn:aws:apigateway:${region}:lambda:path/2015-03-31/functions/${functionArn}/invocations`,
  }
}

/** The bootstrap parameters of an account that SST has prepared. */
export const bootstrapParameters = {
  version: 5,
  asset: 'simulator-assets',
  state: 'simulator-state',
  assetEcrRegistryId: account,
  assetEcrUrl: `${account}.dkr.ecr.${region}.amazonaws.com/simulator`,
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

export function stateOf({ type, name, inputs }: ProviderCall): Record<string, unknown> {
  const physicalName = textOf(inputs['name']) ?? textOf(inputs['bucket']) ?? name
  return { ...inputs, name: physicalName, ...computedAttributes[type]?.(physicalName, inputs) }
}

const lookups: Record<string, (inputs: Record<string, unknown>) => Record<string, unknown>> = {
  'aws:index/getRegion:getRegion': () => ({ region, name: region, id: region }),
  'aws:index/getPartition:getPartition': () => ({ partition: 'aws', dnsSuffix: 'amazonaws.com', id: 'aws' }),
  'aws:index/getCallerIdentity:getCallerIdentity': () => ({ accountId: account, arn: `arn:aws:iam::${account}:root` }),
  'aws:iot/getEndpoint:getEndpoint': () => ({ endpointAddress: `simulator-ats.iot.${region}.amazonaws.com` }),
  'aws:secretsmanager/getRandomPassword:getRandomPassword': () => ({ randomPassword: 'R'.repeat(64) }),
  'aws:iam/getPolicyDocument:getPolicyDocument': ({ statements = [] }) => ({
    statements,
    json: policyOf(statements as Statement[]),
  }),
}

interface Statement {
  effect?: string
  actions?: string[]
  resources?: string[]
  principals?: { type: string; identifiers: string[] }[]
  conditions?: { test: string; variable: string; values: string[] }[]
}

const policyOf = (statements: readonly Statement[]): string =>
  JSON.stringify({
    Version: '2012-10-17',
    Statement: statements.map(({ effect = 'Allow', actions, resources, principals, conditions }) => ({
      Effect: effect,
      Action: actions,
      Resource: resources,
      ...(principals && { Principal: Object.fromEntries(principals.map((each) => [each.type, each.identifiers])) }),
      ...(conditions && {
        Condition: Object.fromEntries(conditions.map(({ test, variable, values }) => [test, { [variable]: values }])),
      }),
    })),
  })

export function resolveData(token: string, inputs: Record<string, unknown>): Record<string, unknown> {
  const lookup = lookups[token]
  if (lookup === undefined) throw new Error(`No result is defined for the lookup ${token}.`)
  return lookup(inputs)
}
