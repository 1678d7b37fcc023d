import { LambdaClient } from '@aws-sdk/client-lambda'
import { CliError, messageOf } from '@platform/cli/exit'
import { SignatureV4 } from '@smithy/signature-v4'

/** Whose credentials these are, and where they lead. */
export interface Account {
  id: string
  region: string
  /** Who asks, as AWS names it. */
  arn: string
}

const patienceMs = 15_000

const howTo = {
  credentials: [
    'The deployment looks where every tool of AWS does: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE,',
    '~/.aws/config and ~/.aws/credentials, a web identity (CI), the role of a container or of a machine.',
    'On your machine: aws configure sso, then export AWS_PROFILE=…; in CI: docs/deployment.md#from-ci.',
  ].join('\n'),
  region: 'Set AWS_REGION, or the region of the profile: export AWS_REGION=eu-central-1',
} as const

/**
 * Asks AWS who is about to deploy: what is missing or has expired is told before anything happens. Throws `Failure`. One call,
 * which needs no permission; no credential is ever printed.
 */
export async function findAccount(): Promise<Account> {
  const named = process.env['AWS_REGION'] || process.env['AWS_DEFAULT_REGION']
  // Any client knows where the SDK looks for regions and credentials.
  const { config } = new LambdaClient(named ? { region: named } : {})
  const region = await config.region().catch((cause: unknown) => {
    throw new CliError('usage', `No region of AWS is set. ${howTo.region}`, cause)
  })
  const credentials = await config.credentials().catch((cause: unknown) => {
    throw new CliError('usage', `There are no credentials for AWS: ${messageOf(cause)}.\n${howTo.credentials}`, cause)
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
  const signal = AbortSignal.timeout(patienceMs)
  const answer = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'manual' }).catch(
    (cause: unknown) => {
      const advice = 'Is the region right, and does the network lead there?'
      throw new CliError('usage', `AWS does not answer at ${url.origin}: ${messageOf(cause)}. ${advice}`, cause)
    },
  )
  const xml = await answer.text()
  const account = { id: element(xml, 'Account'), arn: element(xml, 'Arn') }
  if (answer.ok && account.id !== '') return account
  const said = `${element(xml, 'Code') || answer.status}: ${element(xml, 'Message') || 'no reason given'}`
  throw new CliError('usage', `AWS refuses the credentials (${said}).\n${adviceFor(said)}`)
}

const adviceFor = (said: string): string =>
  said.startsWith('ExpiredToken')
    ? 'They have expired: sign in again (aws sso login), or get new ones.'
    : `Are they whole, and of this account?\n${howTo.credentials}`
