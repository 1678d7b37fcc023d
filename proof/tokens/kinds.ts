import { createPrivateKey, type KeyObject } from 'node:crypto'
import * as ApiToken from '@platform/core/accounts/api-token'
import type { Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import { nowSeconds } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { newId, newSecret } from '@platform/core/id'
import { storeAttempt, storeCode } from '@platform/core/identity-providers/oidc/attempt'
import { readSecret } from '@platform/core/aws/secrets'
import { signIn } from '@platform/core/accounts/session'
import { issueModuleToken, verifyAccessToken } from '@platform/core/signing/access-token'
import { type HostileIssuer, signed, signingKey } from '../../test/support/hostile-issuer.ts'
import { password, type Person } from '../../test/functions/person.ts'
import { adminToken } from '../../test/support/world.ts'
import type { Forgeries } from './forgeries.ts'
import { byEdDsa, tokenOf } from './jws.ts'

const keyOf = (jwk: Record<string, string>): KeyObject => createPrivateKey({ format: 'jwk', key: jwk })

/** The keys that the platform itself signs with. */
export async function platformKeys(): Promise<{ access: KeyObject; statement: KeyObject }> {
  const { access, statement } = JSON.parse((await readSecret(config.PLAT_SECRET_SIGNING_KEYS)) ?? '')
  return { access: keyOf(access[0].jwk), statement: keyOf(statement[0].jwk) }
}

/** The caller that a person's token speaks for. */
export const callerOf = ({ headers }: Person): Promise<Caller> =>
  verifyAccessToken((headers['authorization'] ?? '').split(' ')[1] ?? '')

/** A good token of every kind that the platform gives or takes, but for access tokens and those of relays. */
export async function otherKinds(who: Person): Promise<Forgeries> {
  const caller = await callerOf(who)
  const { refreshToken } = await signIn({ username: who.username, password }, { address: '192.0.2.1' })
  const [sessionId = '', tokenId = '', secret = ''] = refreshToken.split('.')
  const { token: apiToken } = await ApiToken.create(caller, { name: newId('tok') })
  const cluster = await Cluster.register(caller, { name: newId('clus'), type: 'Hypervisor' })
  const providerId = newId('idp')
  const { state, browser } = await storeAttempt({ providerId, nonce: newSecret(), codeVerifier: newSecret() })
  const { userId, organisationId } = who
  const statement = { jobId: newId('job'), clusterId: cluster.id, payloadSha256: 'x', iat: nowSeconds() }
  const { statement: statementKey } = await platformKeys()
  return {
    'a refresh token': refreshToken,
    'the id of a session': sessionId,
    'the id of a refresh token': tokenId,
    'the secret of a refresh token': secret,
    'an API token with another secret': `${apiToken.slice(0, -43)}${newSecret()}`,
    'an API token of another id': `plat_${newId('tok').slice(4)}_${apiToken.slice(-43)}`,
    'half of an API token': apiToken.slice(0, -10),
    'an API token in capitals': apiToken.toUpperCase(),
    'an enrollment token': cluster.enrollmentToken,
    'the initial admin token': await adminToken(),
    'a token for a module': await issueModuleToken('hello', caller),
    'a token for a module that is called like the audience': await issueModuleToken('platform-api', caller),
    'the state of a sign-in': state,
    'what a browser keeps of a sign-in': browser,
    'a sign-in code': await storeCode({ providerId, userId, organisationId }, browser),
    'a job statement': tokenOf({ alg: 'EdDSA', typ: 'job-statement+jws' }, statement, byEdDsa(statementKey)),
    'an ID token of an issuer': await idToken(who),
    'the token of the module host': config.PLAT_MODULE_HOST_TOKEN || newSecret(),
    'a password': password,
    'the id of a user': userId,
  }
}

/** As identity providers sign them, about this very user. */
function idToken({ userId, organisationId, sessionId }: Person): Promise<string> {
  const issuer: Pick<HostileIssuer, 'key'> = { key: signingKey() }
  const claims = {
    iss: 'platform',
    aud: 'platform-api',
    sub: userId,
    org: organisationId,
    sid: sessionId,
    roles: ['OrgAdmin'],
  }
  return signed({ ...claims, iat: nowSeconds(), exp: nowSeconds() + 300, jti: newSecret() }, issuer.key)
}
