import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Context, Provider } from 'oidc-provider'

/** A real OpenID provider that signs in without a page. */

export interface OidcClient {
  clientId: string
  clientSecret: string
  redirectUri: string
  method?: 'client_secret_basic' | 'client_secret_post'
}

type Claims = Record<string, unknown>

type Serve = (request: IncomingMessage, response: ServerResponse) => Promise<void>
const silent: Serve = async (_request, response) => void response.end()

export function newSigningKey(): Record<string, unknown> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'ES256' }
}

export async function startOidcProvider() {
  let serve = silent
  const paths: string[] = []
  const server = createServer((request, response) => {
    paths.push(request.url?.split('?')[0] ?? '')
    serve(request, response).catch(() => response.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const issuer = `http://${host}`
  const people = new Map<string, Claims>()
  let present = ''

  /** Starts the provider with these clients and keys. Earlier tokens become invalid. */
  function open(clients: readonly OidcClient[], keys: readonly object[] = [newSigningKey()], isLean = true): void {
    const provider = new Provider(issuer, configuration(clients, keys, isLean, people))
    const callback = provider.callback()
    serve = async (request, response) => {
      if (!request.url?.startsWith('/interaction/')) return callback(request, response)
      const refusal = { error: 'access_denied', error_description: '<script>alert(1)</script>' }
      const result = present === '' ? refusal : { login: { accountId: present }, consent: {} }
      return provider.interactionFinished(request, response, result)
    }
  }

  return {
    issuer,
    host,
    paths,
    open,
    /** Sets the user of the browser and the claims; '' rejects the sign-in. */
    present: (subject: string, claims: Claims = {}) => {
      present = subject
      people.set(subject, claims)
    },
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const configuration = (
  clients: readonly OidcClient[],
  keys: readonly object[],
  isLean: boolean,
  people: ReadonlyMap<string, Claims>,
) => ({
  clients: clients.map(({ clientId, clientSecret, redirectUri, method = 'client_secret_basic' }) => ({
    client_id: clientId,
    client_secret: clientSecret,
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code'],
    response_types: ['code'],
    token_endpoint_auth_method: method,
    id_token_signed_response_alg: 'ES256',
  })),
  jwks: { keys },
  pkce: { required: () => true },
  features: { devInteractions: { enabled: false } },
  interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
  scopes: ['openid', 'profile', 'email', 'groups'],
  claims: { openid: ['sub'], profile: ['preferred_username'], email: ['email'], groups: ['groups'] },
  /** Returns claims other than the subject only from the userinfo endpoint. */
  conformIdTokenClaims: isLean,
  cookies: { keys: [randomUUID()] },
  ttl: { Interaction: 600, Session: 600, Grant: 600, AccessToken: 600, IdToken: 600, AuthorizationCode: 60 },
  findAccount: (_: unknown, accountId: string) => ({
    accountId,
    claims: () => ({ sub: accountId, ...people.get(accountId) }),
  }),
  loadExistingGrant: async ({ oidc }: Context) => {
    const { clientId } = oidc.client
    const grant = new oidc.provider.Grant({ clientId, accountId: oidc.session.accountId })
    grant.addOIDCScope('openid profile email groups')
    await grant.save()
    return grant
  },
})
