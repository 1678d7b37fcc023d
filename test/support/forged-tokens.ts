import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { readSecret } from '@platform/core/aws/secrets'
import { nowSeconds } from '@platform/core/clock'
import { config } from '@platform/core/config'

/** Invalid tokens, most of which JWT libraries refuse to create. */

export type Claims = Readonly<Record<string, unknown>>

export type Sign = (input: string) => Uint8Array

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const decode = (text: string): Record<string, unknown> => JSON.parse(Buffer.from(text, 'base64url').toString())

export const signEdDsa = (key: KeyObject) => (input: string) => sign(null, Buffer.from(input), key)

const signHmac = (key: string | Uint8Array) => (input: string) => createHmac('sha256', key).update(input).digest()

const signSha256 = (key: KeyObject) => (input: string) =>
  sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })

const signNothing = () => new Uint8Array()
const signZeros = () => new Uint8Array(64)

export function encodeToken(header: Claims, claims: Claims, signInput: Sign): string {
  const input = `${encode(header)}.${encode(claims)}`
  return `${input}.${Buffer.from(signInput(input)).toString('base64url')}`
}

export function decodeToken(token: string) {
  const [header = '', claims = '', signature = ''] = token.split('.')
  return { header, claims, signature, headerFields: decode(header), claimFields: decode(claims) }
}

export async function platformSigningKeys(): Promise<{ access: KeyObject; statement: KeyObject }> {
  const read = async (secret: string) => JSON.parse((await readSecret(secret)) ?? '')
  const keyOf = (jwk: Record<string, string>) => createPrivateKey({ format: 'jwk', key: jwk })
  const [access] = await read(`${config.PLAT_SECRET_KEYS_PREFIX}/access-keys`)
  const { current } = await read(`${config.PLAT_SECRET_KEYS_PREFIX}/statement-keys`)
  return { access: keyOf(access.jwk), statement: keyOf(current.jwk) }
}

export type Forgeries = Readonly<Record<string, string>>

const strangerKey = generateKeyPairSync('ed25519').privateKey
const strangerEcKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const strangerRsaKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
const strangerJwk = createPublicKey(strangerKey).export({ format: 'jwk' })

/** Returns a public key in the forms in which a verifier might use it as a shared secret. */
function publicKeySecrets(publicKey: KeyObject): Readonly<Record<string, string | Uint8Array>> {
  const jwk = publicKey.export({ format: 'jwk' })
  return {
    'as PEM': publicKey.export({ type: 'spki', format: 'pem' }),
    'as DER': publicKey.export({ type: 'spki', format: 'der' }),
    'as its bytes': Buffer.from(jwk.x ?? '', 'base64url'),
    'as JWK': JSON.stringify(jwk),
    'as the x of its JWK': jwk.x ?? '',
    'as an empty text': '',
  }
}

export function wrongSignatures(validToken: string, publicKey: KeyObject): Forgeries {
  const { headerFields: header, claimFields: claims } = decodeToken(validToken)
  const withHeader = (change: Claims, signInput: Sign = signEdDsa(strangerKey)): string =>
    encodeToken({ ...header, ...change }, claims, signInput)
  const hmacs = Object.entries(publicKeySecrets(publicKey)).flatMap(([kind, key]) => [
    [`HS256 with the public key ${kind}`, withHeader({ alg: 'HS256' }, signHmac(key))],
  ])
  return {
    'alg none': withHeader({ alg: 'none' }, signNothing),
    'alg None': withHeader({ alg: 'None' }, signNothing),
    'alg nOnE': withHeader({ alg: 'nOnE' }, signZeros),
    'alg empty': withHeader({ alg: '' }, signNothing),
    'no alg': withHeader({ alg: undefined }, signNothing),
    'alg a list': withHeader({ alg: ['EdDSA'] }),
    ...Object.fromEntries(hmacs),
    'RS256 of a stranger': withHeader({ alg: 'RS256' }, signSha256(strangerRsaKey)),
    'ES256 of a stranger': withHeader({ alg: 'ES256' }, signSha256(strangerEcKey)),
    'EdDSA of a stranger': withHeader({}),
    'EdDSA of a stranger as Ed25519': withHeader({ alg: 'Ed25519' }),
    'its own jwk': withHeader({ jwk: strangerJwk }),
    'its own jwk without kid': withHeader({ jwk: strangerJwk, kid: undefined }),
    'jku of a stranger': withHeader({ jku: 'http://127.0.0.1:1/keys' }),
    'x5u of a stranger': withHeader({ x5u: 'http://127.0.0.1:1/certificate' }),
    'x5c of a stranger': withHeader({ x5c: [encode('no certificate')] }),
    'kid as a path': withHeader({ kid: '../../../../dev/null' }, signHmac('')),
    'kid as a query': withHeader({ kid: "' UNION SELECT 'x" }),
    'kid __proto__': withHeader({ kid: '__proto__' }),
    'kid constructor': withHeader({ kid: 'constructor' }),
    'kid a list': withHeader({ kid: [header['kid']] }),
    'kid an object': withHeader({ kid: { toString: 'x' } }),
    'an unknown kid': withHeader({ kid: 'x'.repeat(16) }),
    'no kid': withHeader({ kid: undefined }),
    'a signature of zeros': withHeader({}, signZeros),
    'no signature': withHeader({}, signNothing),
  }
}

export function malformedTokens(validToken: string): Forgeries {
  const { header, claims, signature, headerFields, claimFields } = decodeToken(validToken)
  const flippedSignature = Buffer.from(signature, 'base64url')
  flippedSignature[10] = (flippedSignature[10] ?? 0) ^ 1
  const spacedClaims = Buffer.from(JSON.stringify(claimFields, null, 1)).toString('base64url')
  const reorderedClaims = encode(Object.fromEntries(Object.entries(claimFields).toReversed()))
  return {
    'other claims': `${header}.${encode({ ...claimFields, org: 'org_01jd8w5k3zr9x2m4c7t6v0b1qa' })}.${signature}`,
    'more roles': `${header}.${encode({ ...claimFields, roles: ['PlatformAdmin', 'OrgAdmin'] })}.${signature}`,
    'a later expiry': `${header}.${encode({ ...claimFields, exp: 4_102_444_800 })}.${signature}`,
    'another header': `${encode({ ...headerFields, extra: 1 })}.${claims}.${signature}`,
    'claims with other spaces': `${header}.${spacedClaims}.${signature}`,
    'claims in another order': `${header}.${reorderedClaims}.${signature}`,
    'one bit of the signature': `${header}.${claims}.${flippedSignature.toString('base64url')}`,
    'half of the signature': validToken.slice(0, -40),
    'without the last letter': validToken.slice(0, -1),
    'one more letter': `${validToken}A`,
    'a signature of DER': `${header}.${claims}.${Buffer.concat([Buffer.from([48, 68]), flippedSignature]).toString('base64url')}`,
    'two parts': `${header}.${claims}`,
    'a dot at its end': `${validToken}.`,
    'five parts': `${validToken}.x.y`,
    'empty claims': `${header}..${signature}`,
    'all in lower case': validToken.toLowerCase(),
    'encoded twice': Buffer.from(validToken).toString('base64url'),
    'as JSON': encode({ payload: claims, protected: header, signature }),
    'percent-encoded': validToken.replaceAll('.', '%2e'),
    'a megabyte': `${header}.${'A'.repeat(1_000_000)}.${signature}`,
    'ten thousand dots': '.'.repeat(10_000),
    'only dots': '..',
    empty: '',
    'a word': 'null',
  }
}

function changesOf(validToken: string, key: KeyObject) {
  const { headerFields: header, claimFields: claims } = decodeToken(validToken)
  return {
    claims,
    withHeader: (change: Claims, signingKey = key): string =>
      encodeToken({ ...header, ...change }, claims, signEdDsa(signingKey)),
    withClaims: (change: Claims): string => encodeToken(header, { ...claims, ...change }, signEdDsa(key)),
  }
}

export function wrongClaims(validToken: string, key: KeyObject): Forgeries {
  const { withHeader, withClaims } = changesOf(validToken, key)
  return {
    'typ JWT': withHeader({ typ: 'JWT' }),
    'no typ': withHeader({ typ: undefined }),
    'typ of a token for modules': withHeader({ typ: 'module+jwt' }),
    'typ of a job statement': withHeader({ typ: 'job-statement+jws' }),
    'an unknown crit': withHeader({ crit: ['x'], x: 1 }),
    'crit of an unencoded payload': withHeader({ crit: ['b64'], b64: false }),
    'another issuer': withClaims({ iss: 'https://issuer.example.com' }),
    'an issuer with a slash': withClaims({ iss: 'platform/' }),
    'no issuer': withClaims({ iss: undefined }),
    'another audience': withClaims({ aud: 'platform-relay' }),
    'a list of other audiences': withClaims({ aud: ['module', 'platform-relay'] }),
    'no audience': withClaims({ aud: undefined }),
    'no subject': withClaims({ sub: undefined }),
    'a list as subject': withClaims({ sub: ['user'] }),
    'no organisation': withClaims({ org: undefined }),
    'a null organisation': withClaims({ org: null }),
    'no session': withClaims({ sid: undefined }),
    'roles as text': withClaims({ roles: 'PlatformAdmin' }),
    'no roles': withClaims({ roles: undefined }),
    'no id': withClaims({ jti: undefined }),
    'no expiry': withClaims({ exp: undefined }),
    'an expiry as text': withClaims({ exp: '4102444800' }),
    'no time of issue': withClaims({ iat: undefined }),
    'issued in ten minutes': withClaims({ iat: nowSeconds() + 600, exp: nowSeconds() + 1500 }),
    'issued in 2100': withClaims({ iat: 4_102_444_800, exp: 4_102_445_700 }),
    'valid for ten years': withClaims({ iat: nowSeconds() - 3600, exp: nowSeconds() + 315_360_000 }),
    'not before ten minutes from now': withClaims({ nbf: nowSeconds() + 600 }),
  }
}

interface RelayIdentity {
  relayId: string
  key: KeyObject
}

export function forgedRelayTokens(validToken: string, own: RelayIdentity, other: RelayIdentity): Forgeries {
  const { claims, withHeader, withClaims } = changesOf(validToken, own.key)
  return {
    'the key of another relay': withHeader({}, other.key),
    'the name of another relay': withHeader({ kid: other.relayId }),
    'an unknown crit': withHeader({ crit: ['x'], x: 1 }),
    'the audience of users': withClaims({ aud: 'platform-api' }),
    'a list of other audiences': withClaims({ aud: ['a', 'b'] }),
    'no audience': withClaims({ aud: undefined }),
    'another path': withClaims({ path: '/api/v1/relay/goodby' }),
    'the path with a slash': withClaims({ path: `${String(claims['path'])}/` }),
    'no path': withClaims({ path: undefined }),
    'another body': withClaims({ bodySha256: 'A'.repeat(43) }),
    'half of the hash of the body': withClaims({ bodySha256: String(claims['bodySha256']).slice(0, 20) }),
    'no body': withClaims({ bodySha256: undefined }),
    'no id': withClaims({ jti: undefined }),
    'a short id': withClaims({ jti: 'x' }),
    'a long id': withClaims({ jti: 'x'.repeat(65) }),
    'no time of issue': withClaims({ iat: undefined }),
    'no expiry': withClaims({ exp: undefined }),
    'valid for an hour': withClaims({ exp: nowSeconds() + 3600 }),
    'an expiry in 2100': withClaims({ exp: 4_102_444_800 }),
    'issued in ten minutes': withClaims({ iat: nowSeconds() + 600, exp: nowSeconds() + 630 }),
    'issued ten minutes ago': withClaims({ iat: nowSeconds() - 600, exp: nowSeconds() - 570 }),
    'not before ten minutes from now': withClaims({ nbf: nowSeconds() + 600 }),
  }
}
