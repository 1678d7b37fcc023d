import { LambdaClient } from '@aws-sdk/client-lambda'
import { CliError, messageOf } from '@platform/cli/exit'
import { endpointOf, signedPost } from './signed-post.ts'

export interface Account {
  id: string
  region: string
  arn: string
}

const advice = {
  credentials: [
    'The deployment uses the standard AWS sources: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE,',
    '~/.aws/config and ~/.aws/credentials, a web identity (CI), or the role of a container or machine.',
    'On your machine: aws configure sso, then export AWS_PROFILE=…; in CI: docs/deployment.md#from-ci.',
  ].join('\n'),
  region: 'Set AWS_REGION, or the region of the profile: export AWS_REGION=eu-central-1',
} as const

/**
 * Finds the account before anything is deployed, with one call that needs no permission. Throws `CliError` if the
 * region or valid credentials are missing, or AWS is unreachable; never prints a credential.
 */
export async function findAccount(): Promise<Account> {
  const regionFromEnvironment = process.env['AWS_REGION'] || process.env['AWS_DEFAULT_REGION']
  // All clients of the SDK resolve the region and the credentials in the same way.
  const { config } = new LambdaClient(regionFromEnvironment ? { region: regionFromEnvironment } : {})
  const region = await config.region().catch((cause: unknown) => {
    throw new CliError('usage', `No AWS region is set. ${advice.region}`, cause)
  })
  await config.credentials().catch((cause: unknown) => {
    throw new CliError('usage', `There are no AWS credentials: ${messageOf(cause)}.\n${advice.credentials}`, cause)
  })
  return { region, ...(await identify(region)) }
}

const elementText = (xml: string, name: string): string => new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1] ?? ''

async function identify(region: string): Promise<Pick<Account, 'id' | 'arn'>> {
  const body = 'Action=GetCallerIdentity&Version=2011-06-15'
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const response = await signedPost({ service: 'sts', region, headers, body }).catch((cause: unknown) => {
    const advice = 'Check the region and the network connection.'
    const { origin } = new URL(endpointOf('sts', region))
    throw new CliError('usage', `AWS is unreachable at ${origin}: ${messageOf(cause)}. ${advice}`, cause)
  })
  const xml = await response.text()
  const account = { id: elementText(xml, 'Account'), arn: elementText(xml, 'Arn') }
  if (response.ok && account.id !== '') return account
  const reason = `${elementText(xml, 'Code') || response.status}: ${elementText(xml, 'Message') || 'no reason given'}`
  throw new CliError('usage', `AWS rejects the credentials (${reason}).\n${adviceFor(reason)}`)
}

const adviceFor = (reason: string): string =>
  reason.startsWith('ExpiredToken')
    ? 'They have expired. Sign in again (aws sso login) or get new ones.'
    : `Check that they are complete and of this account.\n${advice.credentials}`
