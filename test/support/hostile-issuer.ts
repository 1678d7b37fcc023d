import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import { type ServerReply, type Respond, type ReceivedRequest, startServer, type TestServer } from './http-server.ts'

/** An OIDC issuer with programmable responses. */

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
  keys: object[] = []
  metadata: Record<string, unknown> = {}
  userinfo: Record<string, unknown> = {}
  token: () => Promise<string> | string = () => ''
  /** Responses by path, in place of the default. */
  readonly instead = new Map<string, Respond>()

  constructor(server: TestServer) {
    this.server = server
    this.keys = [this.key.wire]
  }

  get url(): string {
    return this.server.url
  }

  asked = (path: string): number => this.server.requests.filter(({ url }) => url.pathname === path).length

  claims = (clientId: string, nonce: string, iat: number): Record<string, unknown> => {
    return { iss: this.url, aud: clientId, sub: 'somebody', nonce, iat, exp: iat + 300, preferred_username: 'somebody' }
  }

  answer = async (seen: ReceivedRequest, outgoing: Parameters<Respond>[1]): Promise<ServerReply | undefined> => {
    const { pathname } = seen.url
    const other = this.instead.get(pathname)
    if (other !== undefined) return other(seen, outgoing)
    if (pathname === '/.well-known/openid-configuration') return json({ ...this.usual(), ...this.metadata })
    if (pathname === '/jwks') return json({ keys: this.keys })
    if (pathname === '/token') {
      return json({ access_token: 'at', token_type: 'Bearer', expires_in: 300, id_token: await this.token() })
    }
    if (pathname === '/userinfo') return json(this.userinfo)
    return { status: 404 }
  }

  usual(): Record<string, unknown> {
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
  let issuer: HostileIssuer | undefined
  const server = await startServer((seen, outgoing) => issuer?.answer(seen, outgoing))
  issuer = new HostileIssuer(server)
  return issuer
}
