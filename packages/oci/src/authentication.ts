import * as z from 'zod'
import { failureOf, headerOf } from './response.ts'
import type { Credentials } from './client.ts'
import { parseDocument } from './document.ts'
import { RegistryError } from './error.ts'
import { isConfidential } from './origin.ts'
import type { TransportResponse } from './transport.ts'

/** An authentication challenge (RFC 9110, section 11.6.1). The scheme and the parameter names are in lower case. */
interface Challenge {
  scheme: string
  parameters: Readonly<Record<string, string>>
}

const schemeOrParameter = /([\w-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]*)))?/g
const maxChallengeLength = 4096

/** Parses the first 4,096 characters of a `WWW-Authenticate` header. A word without a value starts a challenge. */
export function challengesOf(header: string): Challenge[] {
  const challenges: { scheme: string; parameters: Record<string, string> }[] = []
  for (const [, name = '', quoted, plain] of header.slice(0, maxChallengeLength).matchAll(schemeOrParameter)) {
    const value = quoted?.replaceAll(/\\(.)/g, '$1') ?? plain
    if (value === undefined) challenges.push({ scheme: name.toLowerCase(), parameters: {} })
    else Object.assign(challenges.at(-1)?.parameters ?? {}, { [name.toLowerCase()]: value })
  }
  return challenges
}

export interface AuthenticationContext {
  registry: string
  origin: URL
  trustedRealms: readonly string[]
  credentials: () => Promise<Credentials | undefined>
  /** Must not add credentials. */
  send: (url: URL, headers: Readonly<Record<string, string>>) => Promise<TransportResponse>
}

const token = z.string().regex(/^[\w.~+/-]+=*$/)
const TokenResponse = z.union([z.object({ token }), z.object({ access_token: token })])

/**
 * Returns the `Authorization` header for a request that the registry rejected with 401. Requests only the scopes of the
 * caller; the challenge does not select scopes. Throws `RegistryError`.
 */
export async function authorizationFor(
  context: AuthenticationContext,
  rejection: TransportResponse,
  scopes: readonly string[],
): Promise<string> {
  const challenges = challengesOf(headerOf(rejection, 'www-authenticate') ?? '')
  const challenge = challenges.find(({ scheme }) => scheme === 'bearer' || scheme === 'basic')
  const credentials = await context.credentials()
  const basic = credentials && basicAuthorizationOf(credentials)
  if (challenge?.scheme === 'bearer') return requestBearerAuthorization(context, challenge, scopes, basic)
  if (challenge !== undefined && basic !== undefined) return basic
  throw new RegistryError(
    'unauthorized',
    `Registry ${context.registry} requires credentials. ${credentialsAdviceFor(challenge)}`,
  )
}

const credentialsAdviceFor = (challenge: Challenge | undefined): string =>
  challenge === undefined
    ? 'It offers neither Basic nor Bearer authentication.'
    : 'Provide a user name and a password or token.'

const basicAuthorizationOf = ({ username, password }: Credentials): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`

async function requestBearerAuthorization(
  context: AuthenticationContext,
  { parameters: { realm, service } }: Challenge,
  scopes: readonly string[],
  basic: string | undefined,
): Promise<string> {
  const url = parseTrustedRealm(context, realm ?? '')
  if (service !== undefined) url.searchParams.set('service', service)
  for (const scope of scopes) url.searchParams.append('scope', scope)
  const response = await context.send(url, { accept: 'application/json', ...(basic && { authorization: basic }) })
  if (response.status !== 200) throw failureOf(context.registry, 'the request for a token', response)
  const tokenResponse = parseDocument(TokenResponse, response, `The token of registry ${context.registry}`)
  return `Bearer ${'token' in tokenResponse ? tokenResponse.token : tokenResponse.access_token}`
}

/**
 * Parses the URL of a token server. Throws `RegistryError` if the URL is invalid or contains credentials, or if the
 * host is untrusted or the connection insecure.
 */
function parseTrustedRealm({ registry, origin, trustedRealms }: AuthenticationContext, realm: string): URL {
  const url = URL.canParse(realm) ? new URL(realm) : undefined
  if (url === undefined) {
    throw new RegistryError('invalid', `Registry ${registry} requires a token but names no token server.`)
  }
  const isTrusted = url.hostname === origin.hostname || trustedRealms.includes(url.hostname)
  if (isTrusted && isConfidential(url, origin) && url.username === '' && url.password === '') return url
  const { protocol, hostname } = url
  const advice = isTrusted ? 'It must use HTTPS.' : 'If this is correct, add the host to the trusted realms.'
  throw new RegistryError('refused', `Registry ${registry} requires a token from ${protocol}//${hostname}. ${advice}`)
}
