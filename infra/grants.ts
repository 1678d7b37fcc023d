import type { Capability } from '../packages/contract/src/endpoint.ts'
import { hasChannel } from './channel.ts'
import { modulePrefix, moduleRepository, moduleRole } from './modules.ts'
import { queues } from './queues.ts'
import {
  accessKeys,
  auditKey,
  identityPrefix,
  initialAdminToken,
  moduleKey,
  moduleTokenKeys,
  registriesName,
  statementKeys,
  webhookKey,
} from './secrets.ts'
import { settingsOf } from './settings.ts'
import { prefix } from './stage.ts'
import { table } from './storage.ts'

interface Grant {
  actions: string[]
  resources: $util.Input<string>[]
}

const region = aws.getRegionOutput().region
const account = aws.getCallerIdentityOutput().accountId
const { partition } = aws.getPartitionOutput()
const arn = (service: string, name: $util.Input<string>) =>
  $interpolate`arn:${partition}:${service}:${region}:${account}:${name}`

const sendGrant = (name: string): Grant[] => [{ actions: ['sqs:SendMessage'], resources: [queues[name].queue.arn] }]

const readGrant = (secret: aws.secretsmanager.Secret): Grant[] => [
  { actions: ['secretsmanager:GetSecretValue'], resources: [secret.arn] },
]
const writeGrant = (...secrets: aws.secretsmanager.Secret[]): Grant[] => [
  { actions: ['secretsmanager:PutSecretValue'], resources: secrets.map(({ arn }) => arn) },
]

const identitySecrets = arn('secretsmanager', `secret:${identityPrefix}/*`)
/** Includes versions and aliases, whose ARNs begin with the function's. */
const moduleFunctions = arn('lambda', `function:${modulePrefix}-*`)
const moduleRepositories = arn('ecr', `repository/${moduleRepository}/*`)
const platformFunctions = arn('lambda', `function:${prefix}-fn-*`)

const checkpointTarget = settingsOf(process.env)['PLAT_AUDIT_CHECKPOINT_TARGET']
const checkpointGrants = (target: string): Grant[] => [
  {
    actions: ['s3:PutObject'],
    resources: [$interpolate`arn:${partition}:s3:::${target.replace(/^s3:\/\/|\/$/g, '')}/*`],
  },
]

const grants: Record<Exclude<Capability, 'asset:relay'>, Grant[]> = {
  'table:read': [
    {
      actions: ['dynamodb:GetItem', 'dynamodb:BatchGetItem', 'dynamodb:Query'],
      resources: [table.arn, $interpolate`${table.arn}/index/*`],
    },
  ],
  'table:write': [
    {
      actions: [
        'dynamodb:PutItem',
        'dynamodb:UpdateItem',
        'dynamodb:DeleteItem',
        'dynamodb:ConditionCheckItem',
        'dynamodb:BatchWriteItem',
      ],
      resources: [table.arn],
    },
  ],
  'queue:batches': sendGrant('batches'),
  'queue:events': sendGrant('events'),
  'queue:webhooks': sendGrant('webhooks'),
  'queue:installs': sendGrant('installs'),
  'queue:updates': sendGrant('updates'),
  'queue:modules': sendGrant('modules'),
  'secret:access-keys': readGrant(accessKeys),
  'secret:module-token-keys': readGrant(moduleTokenKeys),
  'secret:statement-keys': readGrant(statementKeys),
  'secret:webhook-key': readGrant(webhookKey),
  'secret:module-key': readGrant(moduleKey),
  'secret:audit-key': readGrant(auditKey),
  'secret:keys-write': writeGrant(accessKeys, moduleTokenKeys, statementKeys, webhookKey, moduleKey, auditKey),
  'secret:initial-admin-token': readGrant(initialAdminToken),
  'secret:initial-admin-token-write': writeGrant(initialAdminToken),
  'audit:checkpoints': checkpointTarget === undefined ? [] : checkpointGrants(checkpointTarget),
  'channel:wake': hasChannel
    ? [{ actions: ['iot:Publish'], resources: [arn('iot', `topic/${prefix}/clusters/*`)] }]
    : [],
  'secret:registries': [
    {
      actions: ['secretsmanager:GetSecretValue'],
      resources: [arn('secretsmanager', `secret:${registriesName}-*`)],
    },
  ],
  'secret:identity': [{ actions: ['secretsmanager:GetSecretValue'], resources: [identitySecrets] }],
  'secret:identity-write': [{ actions: ['secretsmanager:CreateSecret'], resources: [identitySecrets] }],
  'secret:identity-remove': [{ actions: ['secretsmanager:DeleteSecret'], resources: [identitySecrets] }],
  'modules:deploy': [
    {
      actions: ['lambda:CreateFunction', 'lambda:UpdateFunctionCode', 'lambda:PublishVersion', 'lambda:TagResource'],
      resources: [moduleFunctions],
    },
    { actions: ['iam:PassRole'], resources: [moduleRole.arn] },
    {
      actions: [
        'ecr:CreateRepository',
        'ecr:SetRepositoryPolicy',
        'ecr:BatchCheckLayerAvailability',
        'ecr:InitiateLayerUpload',
        'ecr:UploadLayerPart',
        'ecr:CompleteLayerUpload',
        'ecr:PutImage',
        // For CreateFunction, Lambda reads the image and the repository policy with the caller's permissions.
        'ecr:GetRepositoryPolicy',
        'ecr:BatchGetImage',
        'ecr:GetDownloadUrlForLayer',
      ],
      resources: [moduleRepositories],
    },
    { actions: ['ecr:GetAuthorizationToken'], resources: ['*'] },
  ],
  'modules:remove': [
    {
      actions: [
        'lambda:GetFunction',
        'lambda:ListVersionsByFunction',
        'lambda:UpdateFunctionConfiguration',
        'lambda:DeleteFunction',
      ],
      resources: [moduleFunctions],
    },
    { actions: ['lambda:ListFunctions'], resources: ['*'] },
    { actions: ['ecr:DeleteRepository'], resources: [moduleRepositories] },
  ],
  'modules:invoke': [{ actions: ['lambda:InvokeFunction'], resources: [moduleFunctions] }],
  'functions:update': [
    {
      actions: ['lambda:UpdateFunctionCode', 'lambda:PublishVersion', 'lambda:DeleteFunction'],
      resources: [platformFunctions],
    },
  ],
  'functions:revert': [
    {
      actions: [
        'lambda:GetFunction',
        'lambda:ListVersionsByFunction',
        'lambda:GetAlias',
        'lambda:UpdateAlias',
        'lambda:InvokeFunction',
      ],
      resources: [platformFunctions],
    },
  ],
}

/** A function may only write to its own log group, which the deployment creates. */
export const logGrant = (functionName: string): Grant => ({
  actions: ['logs:CreateLogStream', 'logs:PutLogEvents'],
  resources: [arn('logs', `log-group:/aws/lambda/${functionName}:*`)],
})

export const grantsOf = (capabilities: readonly Capability[]): Grant[] =>
  capabilities.flatMap((capability) => (capability === 'asset:relay' ? [] : grants[capability]))
