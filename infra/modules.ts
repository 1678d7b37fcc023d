import { prefix } from './stage.ts'

/** What modules run on: functions and image repositories that the platform makes, below these names. */

export const modulePrefix = `${prefix}-mod`
export const moduleRepository = `${prefix}/modules`

/** What a module may do by itself: write its log, and nothing else. */
export const moduleRole = new aws.iam.Role('ModuleRole', {
  name: `${prefix}-module`,
  assumeRolePolicy: aws.iam.assumeRolePolicyForPrincipal({ Service: 'lambda.amazonaws.com' }),
})

new aws.iam.RolePolicyAttachment('ModuleLogs', {
  role: moduleRole.name,
  policyArn: 'arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole',
})
