import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import { type ServerReply, type Respond, startServer, type TestServer } from './http-server.ts'

export interface SigningKey {
  kid: string
  privateKey: KeyObject
  wire: object
}

export function signingKey(kid: string = randomUUID()): SigningKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { kid, privateKey, wire: { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'ES256' } }
}

export const json = (body: unknown, status = 200): ServerReply => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: typeof body === 'string' ? body : JSON.stringify(body),
})

export const signed = (claims: Record<string, unknown>, { kid, privateKey }: SigningKey): Promise<string> =>
  new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid }).sign(privateKey)

export class HostileIssuer {
  readonly server: TestServer
  key = signingKey()
  keys: object[] = [this.key.wire]
  metadata: Record<string, unknown> = {}
  userinfo: Record<string, unknown> = {}
  token: () => Promise<string> | string | undefined = () => ''
  readonly overrides = new Map<string, Respond>()

  constructor(server: TestServer) {
    this.server = server
  }

  get url(): string {
    return this.server.url
  }

  countRequests = (path: string): number => this.server.requests.filter(({ url }) => url.pathname === path).length

  claims = (clientId: string, nonce: string, iat: number): Record<string, unknown> => {
    return { iss: this.url, aud: clientId, sub: 'visitor', nonce, iat, exp: iat + 300, preferred_username: 'visitor' }
  }

  respond: Respond = async (request, outgoing) => {
    const { pathname } = request.url
    const override = this.overrides.get(pathname)
    if (override !== undefined) return override(request, outgoing)
    const tokens = async () => ({
      access_token: 'at',
      token_type: 'Bearer',
      expires_in: 300,
      id_token: await this.token(),
    })
    const bodies: Record<string, () => Promise<object> | object> = {
      '/.well-known/openid-configuration': () => ({ ...this.defaultMetadata(), ...this.metadata }),
      '/jwks': () => ({ keys: this.keys }),
      '/token': tokens,
      '/userinfo': () => this.userinfo,
    }
    const body = bodies[pathname]
    return body === undefined ? { status: 404 } : json(await body())
  }

  defaultMetadata(): Record<string, unknown> {
    return {
      issuer: this.url,
      authorization_endpoint: `${this.url}/authorize`,
      token_endpoint: `${this.url}/token`,
      jwks_uri: `${this.url}/jwks`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256', 'HS256', 'none'],
      authorization_response_iss_parameter_supported: true,
    }
  }
}

export async function startHostileIssuer(): Promise<HostileIssuer> {
  const server = await startServer((request, outgoing) => issuer.respond(request, outgoing))
  const issuer = new HostileIssuer(server)
  return issuer
}
