import { globalPrefix, logRetentionDays, prefix } from './stage.ts'

/** The platform creates a function and an image repository with these prefixes for each module. */

export const modulePrefix = `${prefix}-mod`
export const moduleRepository = `${prefix}/modules`

const account = aws.getCallerIdentityOutput().accountId
const region = aws.getRegionOutput().region
const { dnsSuffix } = aws.getPartitionOutput()

/** The repository prefix in the account's registry, from which Lambda pulls images. */
export const moduleImagePrefix = $interpolate`${account}.dkr.ecr.${region}.${dnsSuffix}/${moduleRepository}`

/** All modules share one log group, so that retention applies: the groups that Lambda creates never expire. */
export const moduleLogGroup = new aws.cloudwatch.LogGroup('ModuleLog', {
  name: `/aws/lambda/${modulePrefix}`,
  retentionInDays: logRetentionDays,
})

/** A module may only write to the log group of the modules. */
export const moduleRole = new aws.iam.Role('ModuleRole', {
  name: $interpolate`${globalPrefix}-module`,
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
