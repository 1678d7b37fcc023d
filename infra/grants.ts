import type { Capability } from '../packages/contract/src/endpoint.ts'
import { modulePrefix, moduleRepository, moduleRole } from './modules.ts'
import { queues } from './queues.ts'
import { identityPrefix, initialAdminToken, registries, signingKeys } from './secrets.ts'
import { prefix } from './stage.ts'
import { table } from './storage.ts'

/** A statement of a function's role. */
interface Grant {
  actions: string[]
  resources: $util.Input<string>[]
}

const region = aws.getRegionOutput().region
const account = aws.getCallerIdentityOutput().accountId
const { partition } = aws.getPartitionOutput()
const arn = (service: string, name: $util.Input<string>) =>
  $interpolate`arn:${partition}:${service}:${region}:${account}:${name}`

const sendTo = (name: string): Grant[] => [{ actions: ['sqs:SendMessage'], resources: [queues[name].queue.arn] }]

const read = (secret: aws.secretsmanager.Secret): Grant[] => [
  { actions: ['secretsmanager:GetSecretValue'], resources: [secret.arn] },
]
const write = (secret: aws.secretsmanager.Secret): Grant[] => [
  { actions: ['secretsmanager:PutSecretValue'], resources: [secret.arn] },
]

const identitySecrets = arn('secretsmanager', `secret:${identityPrefix}/*`)
/** With their versions and aliases, whose ARNs begin with the function's. */
const moduleFunctions = arn('lambda', `function:${modulePrefix}-*`)
const moduleRepositories = arn('ecr', `repository/${moduleRepository}/*`)
const platformFunctions = arn('lambda', `function:${prefix}-fn-*`)

/** What a capability of the contract means on AWS: which actions on which resources. */
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
  'queue:jobs': sendTo('jobs'),
  'queue:batches': sendTo('batches'),
  'queue:events': sendTo('events'),
  'queue:webhooks': sendTo('webhooks'),
  'queue:updates': sendTo('updates'),
  'queue:modules': sendTo('modules'),
  'secret:signing-keys': read(signingKeys),
  'secret:signing-keys-write': write(signingKeys),
  'secret:initial-admin-token': read(initialAdminToken),
  'secret:initial-admin-token-write': write(initialAdminToken),
  'secret:registries': read(registries),
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
        // Lambda looks at an image, and at who may read it, in the name of who makes a function of it.
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

/** The statements of a role that needs these capabilities, and no others. */
export const grantsOf = (uses: readonly Capability[]): Grant[] =>
  uses.flatMap((capability) => (capability === 'asset:relay' ? [] : grants[capability]))
