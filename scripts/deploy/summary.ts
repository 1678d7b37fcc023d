import { type Account } from './account.ts'
import { type Options } from './options.ts'
import { type Outputs } from './sst.ts'

export function deploySummary(stage: string, { id, region }: Account, outputs: Outputs): string {
  const { api, portal, initialAdminToken, alarms, domainTarget } = outputs
  const facts = [
    `  Portal         ${portal}`,
    `  API            ${api}`,
    `  Documentation  ${api.replace(/\/$/, '')}/docs`,
    ...(alarms === undefined ? [] : [`  Alarms         ${alarms}`]),
    ...(domainTarget === undefined
      ? []
      : [`To do          create a CNAME record for the domain that points to ${domainTarget}`]),
  ]
  return `
The stage ${stage} is deployed to account ${id} in ${region}.

${facts.join('\n')}

Not set up yet? Open the portal. It asks for the initial admin token, which this prints (docs/deployment.md#first-sign-in):

  ${initialAdminToken}`
}

/** Lists what a removal leaves behind: resources that the platform created itself. */
export const removeSummary = (stage: string): string => `
The stage ${stage} is removed. What the platform itself had made is left, if there was any; modules that are uninstalled and
providers that are deleted before leave nothing. In this order:

  aws lambda list-functions --output text --query "Functions[?starts_with(FunctionName,'platform-${stage}-mod-')].[FunctionName]" |
    xargs -rn1 aws lambda delete-function --function-name
  aws ecr describe-repositories --output text --query "repositories[?starts_with(repositoryName,'platform-${stage}/')].[repositoryName]" |
    xargs -rn1 aws ecr delete-repository --force --repository-name
  aws secretsmanager list-secrets --output text --filters Key=name,Values=platform-${stage}/identity/ --query "SecretList[].[Name]" |
    xargs -rn1 aws secretsmanager delete-secret --force-delete-without-recovery --secret-id`

const what = { deploy: 'The deployment', diff: 'The comparison', remove: 'The removal' } as const

export const failureSummary = ({ action, stage }: Options): string => `
${what[action]} of the stage ${stage} has failed: what is wrong stands above. Run the same command again once that is put right;
it goes on where this one ended. If it says that the stage is locked and no other deployment is running: npx sst unlock --stage ${stage}`
