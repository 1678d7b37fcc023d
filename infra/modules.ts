import { logRetentionDays, prefix } from './stage.ts'

/** What modules run on: functions and image repositories that the platform makes, below these names. */

export const modulePrefix = `${prefix}-mod`
export const moduleRepository = `${prefix}/modules`

const account = aws.getCallerIdentityOutput().accountId
const region = aws.getRegionOutput().region
const { dnsSuffix } = aws.getPartitionOutput()

/** The same with the account's own registry before it: where Lambda takes images from. */
export const moduleImages = $interpolate`${account}.dkr.ecr.${region}.${dnsSuffix}/${moduleRepository}`

/** All modules write into one group, which is not kept for ever as one that Lambda makes would be. */
export const moduleLogGroup = new aws.cloudwatch.LogGroup('ModuleLog', {
  name: `/aws/lambda/${modulePrefix}`,
  retentionInDays: logRetentionDays,
})

/** What a module may do by itself: write its log, and nothing else. */
export const moduleRole = new aws.iam.Role('ModuleRole', {
  name: `${prefix}-module`,
  assumeRolePolicy: aws.iam.assumeRolePolicyForPrincipal({ Service: 'lambda.amazonaws.com' }),
  inlinePolicies: [
    {
      name: 'log',
      policy: aws.iam.getPolicyDocumentOutput({
        statements: [
          {
            actions: ['logs:CreateLogStream', 'logs:PutLogEvents'],
            resources: [$interpolate`${moduleLogGroup.arn}:*`],
          },
        ],
      }).json,
    },
  ],
})
