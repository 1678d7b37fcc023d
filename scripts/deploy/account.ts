import { LambdaClient } from '@aws-sdk/client-lambda'
import { CliError, messageOf } from '@platform/cli/exit'
import { SignatureV4 } from '@smithy/signature-v4'

/** The AWS account, region and principal of the deployment. */
export interface Account {
  id: string
  region: string
  arn: string
}

const timeoutMs = 15_000

const howTo = {
  credentials: [
    'The deployment uses the standard AWS sources: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE,',
    '~/.aws/config and ~/.aws/credentials, a web identity (CI), or the role of a container or machine.',
    'On your machine: aws configure sso, then export AWS_PROFILE=…; in CI: docs/deployment.md#from-ci.',
  ].join('\n'),
  region: 'Set AWS_REGION, or the region of the profile: export AWS_REGION=eu-central-1',
} as const

/**
 * Finds the account before anything is deployed, with one call that needs no permission. Throws `CliError` if
 * credentials are missing, expired or rejected; never prints a credential.
 */
export async function findAccount(): Promise<Account> {
  const named = process.env['AWS_REGION'] || process.env['AWS_DEFAULT_REGION']
  // Any client resolves region and credentials as the SDK does.
  const { config } = new LambdaClient(named ? { region: named } : {})
  const region = await config.region().catch((cause: unknown) => {
    throw new CliError('usage', `No AWS region is set. ${howTo.region}`, cause)
  })
  const credentials = await config.credentials().catch((cause: unknown) => {
    throw new CliError('usage', `There are no AWS credentials: ${messageOf(cause)}.\n${howTo.credentials}`, cause)
  })
  const url = new URL(endpointOf(region))
  const signer = new SignatureV4({ credentials, region, service: 'sts', sha256: config.sha256 })
  const body = 'Action=GetCallerIdentity&Version=2011-06-15'
  const { headers } = await signer.sign({
    method: 'POST',
    protocol: url.protocol,
    hostname: url.hostname,
    path: url.pathname,
    headers: { host: url.host, 'content-type': 'application/x-www-form-urlencoded' },
    body,
  })
  return { region, ...(await identify(url, headers, body)) }
}

const endpointOf = (region: string): string =>
  process.env['AWS_ENDPOINT_URL_STS'] ||
  process.env['AWS_ENDPOINT_URL'] ||
  `https://sts.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`

const element = (xml: string, name: string): string => new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1] ?? ''

async function identify(url: URL, headers: Record<string, string>, body: string): Promise<Pick<Account, 'id' | 'arn'>> {
  const signal = AbortSignal.timeout(timeoutMs)
  const response = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'manual' }).catch(
    (cause: unknown) => {
      const advice = 'Check the region and the network connection.'
      throw new CliError('usage', `AWS is unreachable at ${url.origin}: ${messageOf(cause)}. ${advice}`, cause)
    },
  )
  const xml = await response.text()
  const account = { id: element(xml, 'Account'), arn: element(xml, 'Arn') }
  if (response.ok && account.id !== '') return account
  const reason = `${element(xml, 'Code') || response.status}: ${element(xml, 'Message') || 'no reason given'}`
  throw new CliError('usage', `AWS rejects the credentials (${reason}).\n${adviceFor(reason)}`)
}

const adviceFor = (reason: string): string =>
  reason.startsWith('ExpiredToken')
    ? 'They have expired. Sign in again (aws sso login) or get new ones.'
    : `Check that they are complete and of this account.\n${howTo.credentials}`
