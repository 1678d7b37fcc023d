import { createPublicKey } from 'node:crypto'
import { now, shiftClock } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import { get } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { enroll } from '@platform/core/relays/enrollment'
import { test } from 'vitest'
import { newUser } from '../functions/users.ts'
import { isProtected, requestTo, type Operation, operationNamed, operations } from '../functions/operations.ts'
import { writes } from '../functions/writes.ts'
import { publicPortalHeaders } from '../support/browser-session.ts'
import { enrollRequest, newRelayKey, relayToken } from '../support/fixtures.ts'
import {
  type Forgeries,
  malformedTokens,
  platformSigningKeys,
  wrongClaims,
  forgedRelayTokens,
  wrongSignatures,
} from '../support/forged-tokens.ts'
import { decodedPath, jsonRequest, send, type TestRequest, type TestResponse } from '../support/request.ts'
import { claimAll, claimAtLeast, claimNone } from './support/claims.ts'
import { amount } from './support/run.ts'
import { callerOf, expiringTokens, tokenOf, tokensOfOtherKinds } from './tokens/token-kinds.ts'

type Headers = Readonly<Record<string, string>>
type Variants = Readonly<Record<string, Headers>>

const seen = { variants: 0, operations: 0, requests: 0, writes: 0 }
const [accepted, different, closed] = [[] as string[], [] as string[], [] as string[]]

function misspelledHeaders(token: string, scheme: 'Bearer' | 'Relay'): Variants {
  const values: Record<string, string> = {
    'no scheme': token,
    'the scheme Basic': `Basic ${token}`,
    'the scheme Token': `Token ${token}`,
    'the scheme DPoP': `DPoP ${token}`,
    'the other scheme': `${scheme === 'Bearer' ? 'Relay' : 'Bearer'} ${token}`,
    'the scheme twice': `${scheme} ${scheme} ${token}`,
    'a colon after the scheme': `${scheme}: ${token}`,
    'a tab after the scheme': `${scheme}\t${token}`,
    'a space before the scheme': ` ${scheme} ${token}`,
    'a space after the token': `${scheme} ${token} `,
    'a line break after the token': `${scheme} ${token}\r\n`,
    'NUL after the token': `${scheme} ${token}\0`,
    'a comma after the token': `${scheme} ${token},`,
    'two tokens with a comma': `${scheme} ${token},${scheme} ${token}`,
    'two tokens with a comma and a space': `${scheme} ${token}, ${scheme} ${token}`,
    'two tokens with a space': `${scheme} ${token} ${token}`,
    'quotes around the token': `${scheme} "${token}"`,
    'a parameter name before the token': `${scheme} token=${token}`,
    'a no-break space': `${scheme}\u00a0${token}`,
    'a Cyrillic letter in the scheme': `${scheme.replace('e', 'е')} ${token}`,
  }
  return {
    ...Object.fromEntries(Object.entries(values).map(([name, authorization]) => [name, { authorization }])),
    'the header Proxy-Authorization': { 'proxy-authorization': `${scheme} ${token}` },
    'the header X-Authorization': { 'x-authorization': `${scheme} ${token}` },
    'the header X-Access-Token': { 'x-access-token': token },
  }
}

const mapForgeries = (forgeries: Forgeries, suffix: string, headersFor: (token: string) => Headers): Variants =>
  Object.fromEntries(Object.entries(forgeries).map(([name, token]) => [`${name}${suffix}`, headersFor(token)]))

/** Returns a response as text, without its trace id. */
function comparable({ status, headers, text }: TestResponse): string {
  const trace = headers['x-trace-id'] ?? ''
  return JSON.stringify([status, { ...headers, 'x-trace-id': '' }, text.replaceAll(trace, '')])
}

/** Sends a request with each wrong token: the response has to equal the one without a token. */
async function tryVariants({ name, handler }: Operation, request: TestRequest, variants: Variants): Promise<void> {
  const expected = comparable(await send(handler, request))
  seen.operations++
  for (const [variant, headers] of Object.entries(variants)) {
    const writesBefore = writes()
    const response = await send(handler, { ...request, headers: { ...headers } })
    seen.requests++
    seen.writes += writes() - writesBefore
    // The platform reports `token_expired` only for a token that its own key has signed.
    const isExpired = /^(?:valid for ten years|issued in)/.test(variant) && response.json?.error === 'token_expired'
    const line = `${name} with ${variant}: ${response.status} ${response.text.slice(0, 200)}`
    if (response.status !== 401) accepted.push(line)
    else if (comparable(response) !== expected && !isExpired) different.push(line)
  }
}

async function enrolledRelay() {
  const key = newRelayKey()
  const caller = await callerOf(await newUser('PlatformAdmin'))
  const { enrollmentToken } = await Cluster.register(caller, { name: newId('clus'), type: 'Hypervisor' })
  const { relayId } = await enroll({ ...enrollRequest(enrollmentToken), publicKey: key.wire })
  return { relayId, key: key.privateKey }
}

test('operations for users reject every wrong token', async () => {
  const user = await newUser('PlatformAdmin')
  const validToken = tokenOf(user.headers)
  const { access } = await platformSigningKeys()
  const relay = await enrolledRelay()
  const forgeries: Forgeries = {
    ...wrongSignatures(validToken, createPublicKey(access)),
    ...malformedTokens(validToken),
    ...wrongClaims(validToken, access),
    ...(await tokensOfOtherKinds(user)),
    'a token of a relay': tokenOf(await relayToken(relay.relayId, relay.key, '/api/v1/sites')),
  }
  const variants = {
    ...mapForgeries(forgeries, '', (token) => ({ authorization: `Bearer ${token}` })),
    ...mapForgeries(forgeries, ', as a cookie', (token) => ({
      ...publicPortalHeaders,
      cookie: `__Host-plat_access=${token}`,
    })),
    ...misspelledHeaders(validToken, 'Bearer'),
  }
  seen.variants += Object.keys(variants).length
  const forUsers = operations.filter((operation) => isProtected(operation) && operation.endpoint.access !== 'relay')
  for (const operation of forUsers.filter((_, index) => index % amount(1, 11) === 0)) {
    await tryVariants(operation, requestTo(operation), variants)
    // Some operations end the session.
    const { headers } = await newUser('PlatformAdmin')
    const { status } = await send(operation.handler, requestTo(operation, { ...headers, ...publicPortalHeaders }))
    if (status === 401) closed.push(operation.name)
  }
})

test('operations for relays reject every wrong token', async () => {
  const user = await newUser('PlatformAdmin')
  const [ownRelay, otherRelay] = [await enrolledRelay(), await enrolledRelay()]
  const others = await tokensOfOtherKinds(user)
  for (const [index, operation] of operations.filter(({ endpoint }) => endpoint.access === 'relay').entries()) {
    const request = requestTo(operation)
    const validToken = tokenOf(await relayToken(ownRelay.relayId, ownRelay.key, decodedPath(request.target)))
    const forgeries: Forgeries = {
      ...wrongSignatures(validToken, createPublicKey(ownRelay.key)),
      ...malformedTokens(validToken),
      ...forgedRelayTokens(validToken, ownRelay, otherRelay),
      ...others,
      'an access token': tokenOf(user.headers),
    }
    const inHeader = mapForgeries(forgeries, '', (token) => ({ authorization: `Relay ${token}` }))
    const variants = { ...inHeader, ...misspelledHeaders(validToken, 'Relay') }
    if (index === 0) seen.variants += Object.keys(variants).length
    await tryVariants(operation, request, variants)
    const { status } = await send(operation.handler, { ...request, headers: { authorization: `Relay ${validToken}` } })
    if (status === 401) closed.push(operation.name)
  }
})

const bodies: Readonly<Record<string, readonly [string, (token: string) => object]>> = {
  'POST /api/v1/auth/refresh': ['a refresh token', (refreshToken) => ({ refreshToken })],
  'POST /api/v1/auth/oidc/token': ['a sign-in code', (code) => ({ code })],
  'POST /api/v1/relay/enroll': ['an enrollment token', (enrollmentToken) => enrollRequest(enrollmentToken)],
}

const misspelledSecrets = (token: string): Forgeries => ({
  'its token in capitals': token.toUpperCase(),
  'its token without the end': token.slice(0, -1),
  'its token without the beginning': token.slice(1),
  'its token with one more letter': `${token}A`,
  'its token with NUL': `${token}\0`,
  'its token between spaces': ` ${token} `,
  'its token twice': `${token}.${token}`,
  'its token with another secret': `${token.slice(0, -20)}${'A'.repeat(20)}`,
  'its token without a secret': `${token.split('.').slice(0, -1).join('.')}.`,
  'its token in Base64': Buffer.from(token).toString('base64url'),
})

test('operations with a token in the body reject tokens of other kinds', async () => {
  const user = await newUser('OrgAdmin')
  const tokens: Forgeries = { ...(await tokensOfOtherKinds(user)), 'an access token': tokenOf(user.headers) }
  for (const [name, [kind, bodyFor]] of Object.entries(bodies)) {
    const { handler, endpoint } = operationNamed(name)
    const { [kind]: ownToken = '', ...others } = tokens
    const variants = Object.entries({ ...others, ...misspelledSecrets(ownToken) })
    seen.variants += variants.length
    seen.operations++
    for (const [variant, token] of variants) {
      const writesBefore = writes()
      const { status, text } = await send(handler, jsonRequest(endpoint.path, bodyFor(token)))
      seen.requests++
      seen.writes += writes() - writesBefore
      if (status < 400 || status >= 500) accepted.push(`${name} with ${variant}: ${status} ${text.slice(0, 200)}`)
    }
  }
})

test('expired tokens are rejected while the table still has their items', async () => {
  const [withoutEffect, late] = [[] as string[], [] as string[]]
  const kinds = Object.entries(expiringTokens)
  const latenessesMs = [0, 1, 1000, 3_600_000, 30 * 24 * 3_600_000]
  for (const [kind, make] of kinds) {
    const validToken = await make(await newUser('OrgAdmin'))
    if ((await validToken.use()).status >= 400) withoutEffect.push(kind)
    for (const lateMs of latenessesMs) {
      const { expiresAtMs, key, use } = await make(await newUser('OrgAdmin'))
      const shiftMs = expiresAtMs + lateMs - now()
      shiftClock(shiftMs)
      if ((await get(key)) === undefined) withoutEffect.push(`${kind}: its item is missing`)
      const { status, text } = await use().finally(() => shiftClock(-shiftMs))
      if (status < 400) late.push(`${kind}, ${lateMs} ms late: ${status} ${text.slice(0, 200)}`)
    }
  }
  claimAll('kinds of tokens that are accepted until they expire', kinds.length - withoutEffect.length, kinds.length)
  claimNone('expired tokens that are accepted', late, kinds.length * latenessesMs.length)
})

test('requests with a wrong token get the same response as without a token, and change nothing', () => {
  const summary = `${seen.requests.toLocaleString('en')} requests to ${seen.operations} operations`
  claimAtLeast('kinds of wrong tokens', seen.variants, 30)
  claimNone('requests with a wrong token that are not rejected', accepted, summary)
  claimNone('responses that differ from the one without a token', different, summary)
  claimNone('writes by rejected requests', seen.writes, summary)
  claimNone('operations that reject the valid token too', closed)
})
