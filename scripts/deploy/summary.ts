import type { Account } from './account.ts'
import type { Options } from './options.ts'
import type { Outputs } from './sst.ts'

export function deploySummary(stage: string, { id, region }: Account, outputs: Outputs): string {
  const { api, portal, initialAdminToken, alarms, domainTarget, frontTarget } = outputs
  const lines = [
    `  Portal         ${portal}`,
    `  API            ${api}`,
    `  Documentation  ${api.replace(/\/$/, '')}/docs`,
    ...(alarms === undefined ? [] : [`  Alarms         ${alarms}`]),
    ...(domainTarget === undefined
      ? []
      : [recordToCreate(frontTarget ? 'origin.<domain>' : 'the domain', domainTarget)]),
    ...(frontTarget === undefined ? [] : [recordToCreate('the domain', frontTarget)]),
  ]
  return `
The stage ${stage} is deployed to account ${id} in ${region}.

${lines.join('\n')}

Not set up yet? Open the portal. It asks for the initial admin token, which this prints (docs/deployment.md#first-sign-in):

  ${initialAdminToken}`
}

const recordToCreate = (name: string, target: string): string =>
  `To do          create a CNAME record for ${name} that points to ${target}`

/** SST does not know resources that the platform or an operator created outside of the deployment. */
export const removeSummary = (stage: string): string => `
The stage ${stage} is removed. Resources of modules and identity providers that still existed, and credentials of registries,
are left, because the deployment did not create them. To delete them, run in this order:

  aws lambda list-functions --output text --query "Functions[?starts_with(FunctionName,'platform-${stage}-mod-')].[FunctionName]" |
    xargs -rn1 aws lambda delete-function --function-name
  aws ecr describe-repositories --output text --query "repositories[?starts_with(repositoryName,'platform-${stage}/')].[repositoryName]" |
    xargs -rn1 aws ecr delete-repository --force --repository-name
  aws secretsmanager list-secrets --output text --filters Key=name,Values=platform-${stage}/ --query "SecretList[].[Name]" |
    xargs -rn1 aws secretsmanager delete-secret --force-delete-without-recovery --secret-id`

const titles = { deploy: 'The deployment', diff: 'The comparison', remove: 'The removal' } as const

export const failureSummary = ({ action, stage }: Options): string => `
${titles[action]} of the stage ${stage} has failed; see the errors above. Remove the cause, then run the same command again:
it continues from here. If the stage is locked although no deployment is running: npx sst unlock --stage ${stage}`
