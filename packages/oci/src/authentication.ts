import * as z from 'zod'
import { failureOf, headerOf } from './response.ts'
import { challengesOf, type Challenge } from './challenge.ts'
import type { Credentials } from './client.ts'
import { parseDocument } from './document.ts'
import { RegistryError } from './error.ts'
import { isConfidential } from './origin.ts'
import type { TransportAnswer } from './transport.ts'

/** The registry to authenticate with, and the means to do so. */
export interface RegistryPrincipal {
  registry: string
  origin: URL
  trustedRealms: readonly string[]
  credentials: () => Promise<Credentials | undefined>
  /** Sends a request without adding credentials. */
  send: (url: URL, headers: Readonly<Record<string, string>>) => Promise<TransportAnswer>
}

const token = z.string().regex(/^[\w.~+/-]+=*$/)
const TokenAnswer = z.union([z.object({ token }), z.object({ access_token: token })])

/**
 * Returns the `Authorization` header for a request that the registry rejected with 401. Requests only the scopes of the
 * caller; the challenge does not select scopes. Throws `RegistryError`.
 */
export async function authorizationFor(
  party: RegistryPrincipal,
  refusal: TransportAnswer,
  scopes: readonly string[],
): Promise<string> {
  const challenges = challengesOf(headerOf(refusal, 'www-authenticate') ?? '')
  const challenge = challenges.find(({ scheme }) => scheme === 'bearer' || scheme === 'basic')
  const credentials = await party.credentials()
  const basic = credentials && basicOf(credentials)
  if (challenge?.scheme === 'bearer') return bearer(party, challenge, scopes, basic)
  if (challenge !== undefined && basic !== undefined) return basic
  throw new RegistryError('unauthorized', `Registry ${party.registry} wants credentials. ${remedy(challenge)}`)
}

const remedy = (challenge: Challenge | undefined): string =>
  challenge === undefined
    ? 'How, it does not tell: only Basic and Bearer are spoken here.'
    : 'Give it a user name and a password, or a token in its place.'

const basicOf = ({ username, password }: Credentials): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`

async function bearer(
  party: RegistryPrincipal,
  { parameters: { realm, service } }: Challenge,
  scopes: readonly string[],
  basic: string | undefined,
): Promise<string> {
  const url = trustedRealm(party, realm ?? '')
  if (service !== undefined) url.searchParams.set('service', service)
  for (const scope of scopes) url.searchParams.append('scope', scope)
  const answer = await party.send(url, { accept: 'application/json', ...(basic && { authorization: basic }) })
  if (answer.status !== 200) throw failureOf(party.registry, 'the request for a token', answer)
  const found = parseDocument(TokenAnswer, answer, `The token that registry ${party.registry} hands out`)
  return `Bearer ${'token' in found ? found.token : found.access_token}`
}

/** Returns the URL of the token server. Never sends credentials to an untrusted host or over an insecure connection. */
function trustedRealm({ registry, origin, trustedRealms }: RegistryPrincipal, realm: string): URL {
  const url = URL.canParse(realm) ? new URL(realm) : undefined
  if (url === undefined) {
    throw new RegistryError('invalid', `Registry ${registry} wants a token and does not tell from where.`)
  }
  const isKnown = url.hostname === origin.hostname || trustedRealms.includes(url.hostname)
  if (isKnown && isConfidential(url, origin) && url.username === '' && url.password === '') return url
  const { protocol, hostname } = url
  const advice = isKnown ? 'It has to be reached by https.' : 'If that is right, add this host to the trusted realms.'
  throw new RegistryError('refused', `Registry ${registry} wants a token of ${protocol}//${hostname}. ${advice}`)
}
