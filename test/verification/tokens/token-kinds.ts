import * as ApiToken from '@platform/core/accounts/api-token'
import { signIn } from '@platform/core/accounts/session'
import type { Caller } from '@platform/core/caller'
import { iso, now, nowSeconds } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { patch } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId, newSecret, sha256 } from '@platform/core/id'
import { storeAttempt, storeCode } from '@platform/core/identity-providers/oidc/attempt'
import { issueModuleToken, verifyAccessToken } from '@platform/core/signing/access-token'
import { cloud } from '../../core/support/identity.ts'
import { password, type SignedInUser, newUser } from '../../functions/users.ts'
import { operationNamed } from '../../functions/operations.ts'
import { administrator, adminToken, enrollRequest } from '../../support/fixtures.ts'
import { encodeToken, type Forgeries, platformSigningKeys, signEdDsa } from '../../support/forged-tokens.ts'
import { signed, signingKey } from '../../support/hostile-issuer.ts'
import { jsonRequest, send, type TestRequest, type TestResponse } from '../../support/request.ts'

export const tokenOf = ({ authorization = '' }: Readonly<Record<string, string>>): string =>
  authorization.split(' ')[1] ?? ''

export const callerOf = ({ headers }: SignedInUser): Promise<Caller> => verifyAccessToken(tokenOf(headers))

const request = (operation: string, sent: TestRequest): Promise<TestResponse> =>
  send(operationNamed(operation).handler, sent)

export const post = (path: string, body: unknown, headers?: Record<string, string>): Promise<TestResponse> =>
  request(`POST ${path}`, jsonRequest(path, body, headers))

const newCluster = async (user: SignedInUser) =>
  Cluster.register(await callerOf(user), { name: newId('clus'), type: 'Hypervisor' })

/**
 * Returns credentials and identifiers that are neither access tokens nor relay tokens, and parts of tokens. API tokens
 * are altered, because a valid one would be accepted.
 */
export async function tokensOfOtherKinds(user: SignedInUser): Promise<Forgeries> {
  const caller = await callerOf(user)
  const { username, userId, organisationId, sessionId } = user
  const { refreshToken } = await signIn({ username, password }, { address: '192.0.2.1' })
  const [tokenSessionId = '', tokenId = '', secret = ''] = refreshToken.split('.')
  const { token: apiToken } = await ApiToken.create(caller, { name: newId('tok') })
  const cluster = await newCluster(user)
  const providerId = newId('idp')
  const { state, browser } = await storeAttempt({ providerId, nonce: newSecret(), codeVerifier: newSecret() })
  const statement = { jobId: newId('job'), clusterId: cluster.id, payloadSha256: 'x', iat: nowSeconds() }
  const { statement: statementKey } = await platformSigningKeys()
  const subject = { iss: 'platform', aud: 'platform-api', sub: userId, org: organisationId, sid: sessionId }
  const times = { iat: nowSeconds(), exp: nowSeconds() + 300, jti: newSecret() }
  return {
    'a refresh token': refreshToken,
    'the id of a session': tokenSessionId,
    'the id of a refresh token': tokenId,
    'the secret of a refresh token': secret,
    'an API token with another secret': `${apiToken.slice(0, -43)}${newSecret()}`,
    'an API token with another id': `plat_${newId('tok').slice(4)}_${apiToken.slice(-43)}`,
    'half of an API token': apiToken.slice(0, -10),
    'an API token in capitals': apiToken.toUpperCase(),
    'an enrollment token': cluster.enrollmentToken,
    'the initial admin token': await adminToken(),
    'a token for a module': await issueModuleToken('hello', caller),
    'a token for a module with the name of the audience': await issueModuleToken('platform-api', caller),
    'the state of a sign-in': state,
    'the browser secret of a sign-in': browser,
    'a sign-in code': await storeCode({ providerId, userId, organisationId }, undefined, browser),
    'a job statement': encodeToken({ alg: 'EdDSA', typ: 'job-statement+jws' }, statement, signEdDsa(statementKey)),
    'an ID token of an issuer': await signed({ ...subject, ...times, roles: ['OrgAdmin'] }, signingKey()),
    'the token of the module host': config.PLAT_MODULE_HOST_TOKEN || newSecret(),
    'a password': password,
    'the id of a user': userId,
  }
}

export interface Expiring {
  expiresAtMs: number
  key: keys.Key
  use: () => Promise<TestResponse>
}

const hourMs = 3_600_000

/** Reopens setup. Returns a body that completes it. */
export async function reopenSetup() {
  const initialAdminToken = await adminToken()
  const set = { setupComplete: false, tokenHash: sha256(initialAdminToken), tokenMintedAtMs: now() }
  await transact([patch(keys.platform(), { set })])
  return { ...administrator, platformName: newId('org'), adminUsername: newId('user'), initialAdminToken }
}

export const expiringTokens: Readonly<Record<string, (user: SignedInUser) => Promise<Expiring>>> = {
  'refresh token': async ({ username }) => {
    const { refreshToken } = await signIn({ username, password }, { address: '192.0.2.1' })
    const [sessionId = '', tokenId = ''] = refreshToken.split('.')
    const use = () => post('/api/v1/auth/refresh', { refreshToken })
    return { expiresAtMs: now() + 7 * 24 * hourMs, key: keys.refreshToken(sessionId, tokenId), use }
  },
  'API token': async (user) => {
    const expiresAtMs = now() + 24 * hourMs
    const { id, token } = await ApiToken.create(await callerOf(user), {
      name: newId('tok'),
      expiresAt: iso(expiresAtMs),
    })
    const headers = { authorization: `Bearer ${token}` }
    const use = () => request('GET /api/v1/auth/me', { target: '/api/v1/auth/me', headers })
    return { expiresAtMs, key: keys.apiToken(id), use }
  },
  'enrollment token': async (user) => {
    const { enrollmentToken } = await newCluster(user)
    const [id = ''] = enrollmentToken.split('.')
    const use = () => post('/api/v1/relay/enroll', enrollRequest(enrollmentToken))
    return { expiresAtMs: now() + 24 * hourMs, key: keys.enrollment(id), use }
  },
  'initial admin token': async () => {
    const body = await reopenSetup()
    const use = () => post('/api/v1/setup/complete', body)
    return { expiresAtMs: now() + 24 * hourMs, key: keys.platform(), use }
  },
  'state of a request for consent': async () => {
    const { headers } = await newUser('PlatformAdmin')
    const path = '/api/v1/platform/identity'
    const { json: provider } = await post(`${path}/providers`, cloud, headers)
    const consent = jsonRequest(`${path}/providers/${provider.id}/consent`, '', headers)
    const { json } = await request(`POST ${path}/providers/{id}/consent`, consent)
    const state = new URL(json.url).searchParams.get('state') ?? ''
    const query = new URLSearchParams({ state, tenant: cloud.tenantId, admin_consent: 'True' }).toString()
    const use = () => request(`GET ${path}/consent-callback`, { target: `${path}/consent-callback?${query}` })
    return { expiresAtMs: now() + 600_000, key: keys.consentRequest(sha256(state)), use }
  },
}
