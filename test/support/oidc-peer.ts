import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { type Context, Provider } from 'oidc-provider'
import { listen } from './http-server.ts'

export interface OidcClient {
  clientId: string
  clientSecret: string
  redirectUri: string
  method?: 'client_secret_basic' | 'client_secret_post'
  algorithm?: 'ES256' | 'HS256'
}

type Claims = Record<string, unknown>

export function newSigningKey(): Record<string, unknown> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'ES256' }
}

export async function startOidcProvider() {
  let respond: RequestListener = (_request, response) => void response.end()
  const paths: string[] = []
  const server = await listen(
    createServer((request, response) => {
      paths.push(request.url?.split('?')[0] ?? '')
      respond(request, response)
    }),
  )
  const users = new Map<string, Claims>()
  let accountId = ''

  /** Replaces the provider with one that has these clients and keys. */
  function open(clients: readonly OidcClient[], keys: readonly object[] = [newSigningKey()], isLean = true): void {
    const provider = new Provider(server.url, configuration(clients, keys, isLean, users))
    const callback = provider.callback()
    const handle = async (request: IncomingMessage, response: ServerResponse) => {
      if (!request.url?.startsWith('/interaction/')) return callback(request, response)
      const refusal = { error: 'access_denied', error_description: '<script>alert(1)</script>' }
      const result = accountId === '' ? refusal : { login: { accountId }, consent: {} }
      return provider.interactionFinished(request, response, result)
    }
    respond = (request, response) => void handle(request, response).catch(() => response.destroy())
  }

  return {
    issuer: server.url,
    host: server.host,
    paths,
    open,
    /** Sets the user who signs in, and the claims of that user. With an empty subject, sign-ins are rejected. */
    present: (subject: string, claims: Claims = {}) => {
      accountId = subject
      users.set(subject, claims)
    },
    remove: (subject: string) => void users.delete(subject),
    close: () => server[Symbol.asyncDispose](),
  }
}

const configuration = (
  clients: readonly OidcClient[],
  keys: readonly object[],
  isLean: boolean,
  users: ReadonlyMap<string, Claims>,
) => ({
  clients: clients.map(
    ({ clientId, clientSecret, redirectUri, method = 'client_secret_basic', algorithm = 'ES256' }) => ({
      client_id: clientId,
      client_secret: clientSecret,
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: method,
      id_token_signed_response_alg: algorithm,
    }),
  ),
  jwks: { keys },
  enabledJWA: { idTokenSigningAlgValues: ['ES256', 'HS256'] },
  pkce: { required: () => true },
  features: { devInteractions: { enabled: false } },
  interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
  scopes: ['openid', 'profile', 'email', 'groups', 'offline_access'],
  claims: { openid: ['sub'], profile: ['preferred_username', 'name'], email: ['email'], groups: ['groups'] },
  /** If true, only the userinfo endpoint returns claims other than the subject. */
  conformIdTokenClaims: isLean,
  cookies: { keys: [randomUUID()] },
  ttl: {
    Interaction: 600,
    Session: 600,
    Grant: 600,
    AccessToken: 600,
    IdToken: 604_800,
    AuthorizationCode: 60,
    RefreshToken: 600,
  },
  issueRefreshToken: () => true,
  /** A refresh token works once; a second use revokes the grant. */
  rotateRefreshToken: true,
  findAccount: (_: unknown, accountId: string) =>
    users.has(accountId) ? { accountId, claims: () => ({ sub: accountId, ...users.get(accountId) }) } : undefined,
  loadExistingGrant: async ({ oidc }: Context) => {
    const { clientId } = oidc.client
    const grant = new oidc.provider.Grant({ clientId, accountId: oidc.session.accountId })
    grant.addOIDCScope('openid profile email groups offline_access')
    await grant.save()
    return grant
  },
})
