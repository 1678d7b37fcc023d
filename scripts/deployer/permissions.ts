/** IAM permissions for deploying: for each resource type, the actions that create, read, update and delete it. */

/**
 * A statement of a policy; `resources` are ARNs without `arn:PARTITION:`, for a stage whose names begin with `prefix`.
 */
export interface Permission {
  actions: readonly string[]
  resources: (prefix: string) => readonly string[]
  condition?: (prefix: string) => Record<string, Record<string, string | readonly string[]>>
}

const actionsOf = (service: string, actions: string): readonly string[] =>
  actions.split(' ').map((name) => `${service}:${name}`)

const permission = (service: string, actions: string, resources: Permission['resources']): Permission => ({
  actions: actionsOf(service, actions),
  resources,
})

const allResources = () => ['*']
const logGroups = (prefix: string) => [
  `logs:*:*:log-group:/aws/lambda/${prefix}-*`,
  `logs:*:*:log-group:/aws/vendedlogs/apis/${prefix}-*`,
]
const functions = (prefix: string) => [`lambda:*:*:function:${prefix}-fn-*`]
const roleArns = (prefix: string) => [`iam::*:role/${prefix}-*`]
const topics = (prefix: string) => [`sns:*:*:${prefix}-*`]
const zones = () => ['route53:::hostedzone/*']

const assetObjects = permission(
  's3',
  'GetObject GetObjectTagging PutObject PutObjectTagging DeleteObject ListBucket',
  () => ['s3:::sst-asset-*'],
)
const functionTags = permission('lambda', 'TagResource UntagResource ListTags', functions)
const gateway: Permission = {
  actions: actionsOf('apigateway', 'GET POST PUT PATCH DELETE'),
  // APIs have generated ids instead of names.
  resources: () => ['apigateway:*::/apis', 'apigateway:*::/apis/*', 'apigateway:*::/tags/*'],
}
const domains: Permission = {
  actions: actionsOf('apigateway', 'GET POST PUT PATCH DELETE'),
  resources: () => ['apigateway:*::/domainnames', 'apigateway:*::/domainnames/*'],
}
const rolePolicies = permission('iam', 'PutRolePolicy GetRolePolicy DeleteRolePolicy ListRolePolicies', roleArns)
const certificates = () => ['acm:*:*:certificate/*']

/** Creating a function or schedule passes a role to it. */
const passRole = (service: 'lambda' | 'scheduler'): Permission => ({
  actions: ['iam:PassRole'],
  resources: roleArns,
  condition: () => ({ StringEquals: { 'iam:PassedToService': `${service}.amazonaws.com` } }),
})

const eventSourceMappings: Permission[] = [
  // Event source mappings have generated ids, so a condition restricts them to the stage's functions.
  {
    actions: actionsOf('lambda', 'CreateEventSourceMapping'),
    resources: allResources,
    condition: (prefix) => ({ ArnLike: { 'lambda:FunctionArn': `arn:*:lambda:*:*:function:${prefix}-fn-*` } }),
  },
  {
    actions: actionsOf('lambda', 'GetEventSourceMapping UpdateEventSourceMapping DeleteEventSourceMapping'),
    resources: () => ['lambda:*:*:event-source-mapping:*'],
    condition: (prefix) => ({ ArnLike: { 'lambda:FunctionArn': `arn:*:lambda:*:*:function:${prefix}-fn-*` } }),
  },
  permission('lambda', 'TagResource UntagResource ListTags', () => ['lambda:*:*:event-source-mapping:*']),
]

/** Resource type → permissions to deploy it; empty for types that need none. */
export const permissionsOf: Readonly<Record<string, readonly Permission[]>> = {
  'aws:acm/certificate:Certificate': [
    permission('acm', 'RequestCertificate', allResources),
    permission(
      'acm',
      'DescribeCertificate DeleteCertificate AddTagsToCertificate RemoveTagsFromCertificate ListTagsForCertificate',
      certificates,
    ),
  ],
  'aws:acm/certificateValidation:CertificateValidation': [permission('acm', 'DescribeCertificate', certificates)],
  'aws:apigatewayv2/api:Api': [
    gateway,
    // The first gateway of an account creates a service-linked role.
    {
      actions: ['iam:CreateServiceLinkedRole'],
      resources: () => ['iam::*:role/aws-service-role/ops.apigateway.amazonaws.com/*'],
      condition: () => ({ StringEquals: { 'iam:AWSServiceName': 'ops.apigateway.amazonaws.com' } }),
    },
  ],
  'aws:apigatewayv2/apiMapping:ApiMapping': [domains],
  'aws:apigatewayv2/domainName:DomainName': [domains],
  'aws:apigatewayv2/integration:Integration': [gateway],
  'aws:apigatewayv2/route:Route': [gateway],
  'aws:apigatewayv2/stage:Stage': [
    gateway,
    // Log delivery actions support no resource restriction.
    permission(
      'logs',
      'CreateLogDelivery GetLogDelivery UpdateLogDelivery DeleteLogDelivery ListLogDeliveries PutResourcePolicy DescribeResourcePolicies',
      allResources,
    ),
  ],
  'aws:budgets/budget:Budget': [
    permission('budgets', 'ViewBudget ModifyBudget TagResource UntagResource ListTagsForResource', (prefix) => [
      `budgets::*:budget/${prefix}-*`,
    ]),
  ],
  'aws:cloudfront/distribution:Distribution': [
    permission('cloudfront', 'CreateDistribution', allResources),
    // Distributions have generated ids.
    permission(
      'cloudfront',
      'GetDistribution UpdateDistribution DeleteDistribution TagResource UntagResource ListTagsForResource',
      () => ['cloudfront::*:distribution/*'],
    ),
  ],
  'aws:cloudwatch/dashboard:Dashboard': [
    permission('cloudwatch', 'PutDashboard GetDashboard DeleteDashboards', (prefix) => [
      `cloudwatch::*:dashboard/${prefix}-*`,
    ]),
  ],
  'aws:cloudwatch/logGroup:LogGroup': [
    permission('logs', 'DescribeLogGroups', allResources),
    permission(
      'logs',
      'CreateLogGroup DeleteLogGroup PutRetentionPolicy DeleteRetentionPolicy TagResource UntagResource ListTagsForResource',
      logGroups,
    ),
  ],
  'aws:cloudwatch/metricAlarm:MetricAlarm': [
    permission(
      'cloudwatch',
      'PutMetricAlarm DescribeAlarms DeleteAlarms TagResource UntagResource ListTagsForResource',
      (prefix) => [`cloudwatch:*:*:alarm:${prefix}-*`],
    ),
  ],
  'aws:dynamodb/table:Table': [
    permission(
      'dynamodb',
      'CreateTable DescribeTable UpdateTable DeleteTable DescribeTimeToLive UpdateTimeToLive DescribeContinuousBackups UpdateContinuousBackups TagResource UntagResource ListTagsOfResource',
      (prefix) => [`dynamodb:*:*:table/${prefix}-*`],
    ),
  ],
  'aws:iam/role:Role': [
    permission(
      'iam',
      'CreateRole GetRole UpdateRole UpdateAssumeRolePolicy DeleteRole TagRole UntagRole ListAttachedRolePolicies ListInstanceProfilesForRole',
      roleArns,
    ),
    rolePolicies,
  ],
  'aws:iam/rolePolicy:RolePolicy': [rolePolicies],
  'aws:iot/authorizer:Authorizer': [
    permission(
      'iot',
      'CreateAuthorizer DescribeAuthorizer UpdateAuthorizer DeleteAuthorizer TagResource UntagResource ListTagsForResource',
      (prefix) => [`iot:*:*:authorizer/${prefix}-*`],
    ),
    // The deployment reads the address of the account's broker.
    permission('iot', 'DescribeEndpoint', allResources),
  ],
  'aws:iot/topicRule:TopicRule': [
    permission(
      'iot',
      'CreateTopicRule GetTopicRule ReplaceTopicRule DeleteTopicRule TagResource UntagResource ListTagsForResource',
      (prefix) => [`iot:*:*:rule/${prefix.replaceAll('-', '_')}_*`],
    ),
  ],
  'aws:lambda/alias:Alias': [permission('lambda', 'CreateAlias GetAlias UpdateAlias DeleteAlias', functions)],
  'aws:lambda/eventSourceMapping:EventSourceMapping': eventSourceMappings,
  'aws:lambda/function:Function': [
    permission(
      'lambda',
      'CreateFunction GetFunction GetFunctionConfiguration GetFunctionCodeSigningConfig UpdateFunctionCode UpdateFunctionConfiguration PublishVersion ListVersionsByFunction DeleteFunction',
      functions,
    ),
    permission('lambda', 'PutFunctionConcurrency GetFunctionConcurrency DeleteFunctionConcurrency', functions),
    functionTags,
    passRole('lambda'),
  ],
  'aws:lambda/functionEventInvokeConfig:FunctionEventInvokeConfig': [
    permission(
      'lambda',
      'PutFunctionEventInvokeConfig GetFunctionEventInvokeConfig UpdateFunctionEventInvokeConfig DeleteFunctionEventInvokeConfig',
      functions,
    ),
  ],
  'aws:lambda/functionRecursionConfig:FunctionRecursionConfig': [
    permission('lambda', 'PutFunctionRecursionConfig GetFunctionRecursionConfig', functions),
  ],
  'aws:lambda/invocation:Invocation': [permission('lambda', 'InvokeFunction', functions)],
  'aws:lambda/permission:Permission': [permission('lambda', 'AddPermission RemovePermission GetPolicy', functions)],
  'aws:route53/record:Record': [
    permission('route53', 'ChangeResourceRecordSets ListResourceRecordSets GetHostedZone', zones),
    permission('route53', 'GetChange', () => ['route53:::change/*']),
  ],
  'aws:s3/bucketObjectv2:BucketObjectv2': [assetObjects],
  'aws:scheduler/schedule:Schedule': [
    permission('scheduler', 'CreateSchedule GetSchedule UpdateSchedule DeleteSchedule', (prefix) => [
      `scheduler:*:*:schedule/default/${prefix}-*`,
    ]),
    passRole('scheduler'),
  ],
  'aws:secretsmanager/secret:Secret': [
    permission(
      'secretsmanager',
      'CreateSecret DescribeSecret GetResourcePolicy UpdateSecret DeleteSecret RestoreSecret TagResource UntagResource',
      (prefix) => [`secretsmanager:*:*:secret:${prefix}/*`],
    ),
  ],
  'aws:secretsmanager/secretVersion:SecretVersion': [
    permission('secretsmanager', 'PutSecretValue GetSecretValue UpdateSecretVersionStage', (prefix) => [
      `secretsmanager:*:*:secret:${prefix}/front-secret-*`,
    ]),
    permission('secretsmanager', 'GetRandomPassword', allResources),
  ],
  'aws:sns/topic:Topic': [
    permission(
      'sns',
      'CreateTopic GetTopicAttributes SetTopicAttributes DeleteTopic TagResource UntagResource ListTagsForResource',
      topics,
    ),
  ],
  'aws:sns/topicPolicy:TopicPolicy': [permission('sns', 'GetTopicAttributes SetTopicAttributes', topics)],
  'aws:sns/topicSubscription:TopicSubscription': [
    permission('sns', 'Subscribe Unsubscribe GetSubscriptionAttributes SetSubscriptionAttributes', topics),
  ],
  'aws:sqs/queue:Queue': [
    permission(
      'sqs',
      'CreateQueue GetQueueAttributes GetQueueUrl SetQueueAttributes DeleteQueue TagQueue UntagQueue ListQueueTags',
      (prefix) => [`sqs:*:*:${prefix}-*`],
    ),
  ],
  // SST looks up the hosted zone of a domain.
  'pulumi-nodejs:dynamic:Resource': [permission('route53', 'ListHostedZones', allResources)],
  'pulumi:pulumi:Stack': [],
  'aws:wafv2/webAcl:WebAcl': [
    permission(
      'wafv2',
      'CreateWebACL GetWebACL UpdateWebACL DeleteWebACL TagResource UntagResource ListTagsForResource',
      (prefix) => [`wafv2:us-east-1:*:global/webacl/${prefix}-*`, 'wafv2:us-east-1:*:global/managedruleset/*'],
    ),
  ],
  'pulumi:providers:aws': [],
  'random:index/randomBytes:RandomBytes': [],
}

/**
 * Permissions that every deployment needs: for SST's buckets, parameters and image repository, which exist once per
 * account and region, and for the limits of the account.
 */
export const ownPermissions: readonly Permission[] = [
  permission(
    's3',
    'CreateBucket ListBucket PutBucketVersioning PutBucketNotification PutBucketPolicy GetObject PutObject DeleteObject',
    () => ['s3:::sst-state-*', 's3:::sst-asset-*'],
  ),
  permission('lambda', 'GetAccountSettings', allResources),
  permission('servicequotas', 'GetServiceQuota', () => ['servicequotas:*:*:apigateway/*']),
  permission('ssm', 'GetParameter GetParameters PutParameter', () => ['ssm:*:*:parameter/sst/*']),
  permission('ecr', 'CreateRepository DescribeRepositories', () => ['ecr:*:*:repository/sst-asset']),
]
