import { logRetentionDays, prefix } from './stage.ts'

/** Name prefixes of the functions and image repositories that the platform creates for modules. */

export const modulePrefix = `${prefix}-mod`
export const moduleRepository = `${prefix}/modules`

const account = aws.getCallerIdentityOutput().accountId
const region = aws.getRegionOutput().region
const { dnsSuffix } = aws.getPartitionOutput()

/** The same in the account's registry, from which Lambda pulls images. */
export const moduleImages = $interpolate`${account}.dkr.ecr.${region}.${dnsSuffix}/${moduleRepository}`

/** One log group for all modules, so that retention applies; Lambda's own groups never expire. */
export const moduleLogGroup = new aws.cloudwatch.LogGroup('ModuleLog', {
  name: `/aws/lambda/${modulePrefix}`,
  retentionInDays: logRetentionDays,
})

/** A module's role: it may only write its log. */
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
