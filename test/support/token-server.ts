import { createHash, createPrivateKey, createPublicKey } from 'node:crypto'
import { SignJWT } from 'jose'
import type { RegistryGuard } from './docker-registry.ts'
import { startServer } from './http-server.ts'
import { createCertificates } from './slapd.ts'
import { temporaryFolder } from './temporary-folder.ts'

const issuer = 'tests'
const service = 'registry-of-tests'

/** Returns the key id of docker-registry: the first 30 bytes of the hash in base32, in groups of four characters. */
const fingerprint = (key: Buffer): string =>
  (base32(createHash('sha256').update(key).digest().subarray(0, 30)).match(/.{4}/g) ?? []).join(':')

const base32 = (bytes: Buffer): string =>
  (bytes.toString('hex').match(/.{5}/g) ?? [])
    .map((hex) => Number.parseInt(hex, 16))
    .flatMap((bits) => [15, 10, 5, 0].map((shift) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'[(bits >> shift) & 31]))
    .join('')

/** Issues tokens for docker-registry to `ada` with the password `correct horse battery`. */
export async function startTokenServer() {
  await using folder = await temporaryFolder()
  const { cert, key: keyPem } = await createCertificates(folder.path)
  const key = createPrivateKey(keyPem)
  const kid = fingerprint(createPublicKey(key).export({ type: 'spki', format: 'der' }))
  const grantedScopes: string[][] = []
  const server = await startServer(async ({ url, headers }) => {
    const expected = `Basic ${Buffer.from('ada:correct horse battery').toString('base64')}`
    const isRight = headers.authorization === expected && url.searchParams.get('service') === service
    if (!isRight) return { status: 401 }
    const scopes = url.searchParams.getAll('scope')
    grantedScopes.push(scopes)
    const access = scopes.map((scope) => {
      const [type, name, actions] = scope.split(':')
      return { type, name, actions: actions?.split(',') }
    })
    const token = await new SignJWT({ access, jti: String(grantedScopes.length) })
      .setProtectedHeader({ alg: 'ES256', typ: 'JWT', kid })
      .setIssuer(issuer)
      .setSubject('ada')
      .setAudience(service)
      .setIssuedAt()
      .setNotBefore('-10s')
      .setExpirationTime('5m')
      .sign(key)
    return { status: 200, body: JSON.stringify({ token, expires_in: 300 }) }
  })
  const rootcertbundle = '{folder}/certificate.pem'
  const guard: RegistryGuard = {
    auth: { token: { realm: `${server.url}/token`, service, issuer, rootcertbundle } },
    files: { 'certificate.pem': cert },
  }
  return { guard, granted: grantedScopes, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

export type TokenServer = Awaited<ReturnType<typeof startTokenServer>>
