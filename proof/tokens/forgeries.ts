import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { byDigest, byEdDsa, byHmac, type Claims, part, partsOf, type Signing, tokenOf } from './jws.ts'

/** Tokens that are not the platform's, made of one that is. By what is wrong about them. */
export type Forgeries = Readonly<Record<string, string>>

const stranger = generateKeyPairSync('ed25519').privateKey
const strangersEc = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const strangersRsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
const strangersJwk = createPublicKey(stranger).export({ format: 'jwk' })

const nobody: Signing = () => new Uint8Array()
const zeros: Signing = () => new Uint8Array(64)

/** Keys are public: whoever takes a public one for a shared secret believes everybody. */
function byPublicKey(publicKey: KeyObject): Readonly<Record<string, string | Uint8Array>> {
  const jwk = publicKey.export({ format: 'jwk' })
  return {
    'as PEM': publicKey.export({ type: 'spki', format: 'pem' }),
    'as DER': publicKey.export({ type: 'spki', format: 'der' }),
    'as its bytes': Buffer.from(jwk.x ?? '', 'base64url'),
    'as JWK': JSON.stringify(jwk),
    'as the x of its JWK': jwk.x ?? '',
    'that is empty': '',
  }
}

/** Signed by somebody else, or by nobody, whatever the header says of it. */
export function wronglySigned(good: string, publicKey: KeyObject): Forgeries {
  const { readHeader: header, readClaims: claims } = partsOf(good)
  const withHeader = (change: Claims, signing: Signing = byEdDsa(stranger)): string =>
    tokenOf({ ...header, ...change }, claims, signing)
  const hmacs = Object.entries(byPublicKey(publicKey)).flatMap(([how, key]) => [
    [`HS256 with the public key ${how}`, withHeader({ alg: 'HS256' }, byHmac(key))],
  ])
  return {
    'alg none': withHeader({ alg: 'none' }, nobody),
    'alg None': withHeader({ alg: 'None' }, nobody),
    'alg nOnE': withHeader({ alg: 'nOnE' }, zeros),
    'alg empty': withHeader({ alg: '' }, nobody),
    'no alg': withHeader({ alg: undefined }, nobody),
    'alg a list': withHeader({ alg: ['EdDSA'] }),
    ...Object.fromEntries(hmacs),
    'RS256 of a stranger': withHeader({ alg: 'RS256' }, byDigest(strangersRsa)),
    'ES256 of a stranger': withHeader({ alg: 'ES256' }, byDigest(strangersEc)),
    'EdDSA of a stranger': withHeader({}),
    'EdDSA of a stranger as Ed25519': withHeader({ alg: 'Ed25519' }),
    'its own jwk': withHeader({ jwk: strangersJwk }),
    'its own jwk without kid': withHeader({ jwk: strangersJwk, kid: undefined }),
    'jku of a stranger': withHeader({ jku: 'http://127.0.0.1:1/keys' }),
    'x5u of a stranger': withHeader({ x5u: 'http://127.0.0.1:1/certificate' }),
    'x5c of a stranger': withHeader({ x5c: [part('no certificate')] }),
    'kid as a path': withHeader({ kid: '../../../../dev/null' }, byHmac('')),
    'kid as a query': withHeader({ kid: "' UNION SELECT 'x" }),
    'kid __proto__': withHeader({ kid: '__proto__' }),
    'kid constructor': withHeader({ kid: 'constructor' }),
    'kid a list': withHeader({ kid: [header['kid']] }),
    'kid an object': withHeader({ kid: { toString: 'x' } }),
    'kid of nobody': withHeader({ kid: 'x'.repeat(16) }),
    'no kid': withHeader({ kid: undefined }),
    'a signature of zeros': withHeader({}, zeros),
    'no signature': withHeader({}, nobody),
  }
}

/** Made of a good one by whoever has it, without any key. */
export function mangled(good: string): Forgeries {
  const { header, claims, signature, readHeader, readClaims } = partsOf(good)
  const flipped = Buffer.from(signature, 'base64url')
  flipped[10] = (flipped[10] ?? 0) ^ 1
  const spaced = Buffer.from(JSON.stringify(readClaims, null, 1)).toString('base64url')
  const reordered = part(Object.fromEntries(Object.entries(readClaims).toReversed()))
  return {
    'other claims': `${header}.${part({ ...readClaims, org: 'org_01jd8w5k3zr9x2m4c7t6v0b1qa' })}.${signature}`,
    'more roles': `${header}.${part({ ...readClaims, roles: ['PlatformAdmin', 'OrgAdmin'] })}.${signature}`,
    'a longer life': `${header}.${part({ ...readClaims, exp: 4_102_444_800 })}.${signature}`,
    'another header': `${part({ ...readHeader, extra: 1 })}.${claims}.${signature}`,
    'claims with other spaces': `${header}.${spaced}.${signature}`,
    'claims in another order': `${header}.${reordered}.${signature}`,
    'one bit of the signature': `${header}.${claims}.${flipped.toString('base64url')}`,
    'half of the signature': good.slice(0, -40),
    'all but the last letter': good.slice(0, -1),
    'a letter more': `${good}A`,
    'a signature of DER': `${header}.${claims}.${Buffer.concat([Buffer.from([48, 68]), flipped]).toString('base64url')}`,
    'two parts': `${header}.${claims}`,
    'a dot at its end': `${good}.`,
    'five parts': `${good}.x.y`,
    'empty claims': `${header}..${signature}`,
    'all in lower case': good.toLowerCase(),
    'encoded once more': Buffer.from(good).toString('base64url'),
    'as JSON': part({ payload: claims, protected: header, signature }),
    'percent-encoded': good.replaceAll('.', '%2e'),
    'a megabyte': `${header}.${'A'.repeat(1_000_000)}.${signature}`,
    'ten thousand dots': '.'.repeat(10_000),
    'dots alone': '..',
    'no text': '',
    'a word': 'null',
  }
}

/** Signed with the platform's own key, as a flaw elsewhere in it might: about what it never says. */
export function wronglyClaimed(good: string, key: KeyObject, nowSeconds: number): Forgeries {
  const { readHeader: header, readClaims: claims } = partsOf(good)
  const withHeader = (change: Claims): string => tokenOf({ ...header, ...change }, claims, byEdDsa(key))
  const withClaims = (change: Claims): string => tokenOf(header, { ...claims, ...change }, byEdDsa(key))
  return {
    'typ JWT': withHeader({ typ: 'JWT' }),
    'no typ': withHeader({ typ: undefined }),
    'typ of a token for modules': withHeader({ typ: 'module+jwt' }),
    'typ of a job statement': withHeader({ typ: 'job-statement+jws' }),
    'an unknown crit': withHeader({ crit: ['x'], x: 1 }),
    'crit of a payload that is not encoded': withHeader({ crit: ['b64'], b64: false }),
    'another issuer': withClaims({ iss: 'https://issuer.example.com' }),
    'an issuer with a slash': withClaims({ iss: 'platform/' }),
    'no issuer': withClaims({ iss: undefined }),
    'another audience': withClaims({ aud: 'platform-relay' }),
    'a list of other audiences': withClaims({ aud: ['module', 'platform-relay'] }),
    'no audience': withClaims({ aud: undefined }),
    'no subject': withClaims({ sub: undefined }),
    'a subject that is a list': withClaims({ sub: ['user'] }),
    'no organisation': withClaims({ org: undefined }),
    'an organisation that is none': withClaims({ org: null }),
    'no session': withClaims({ sid: undefined }),
    'roles that are a text': withClaims({ roles: 'PlatformAdmin' }),
    'no roles': withClaims({ roles: undefined }),
    'no id': withClaims({ jti: undefined }),
    'no end': withClaims({ exp: undefined }),
    'an end that is a text': withClaims({ exp: '4102444800' }),
    'no beginning': withClaims({ iat: undefined }),
    'a beginning in ten minutes': withClaims({ iat: nowSeconds + 600, exp: nowSeconds + 1500 }),
    'a beginning in 2100': withClaims({ iat: 4_102_444_800, exp: 4_102_445_700 }),
    'ten years old': withClaims({ iat: nowSeconds - 3600, exp: nowSeconds + 315_360_000 }),
    'not before ten minutes from now': withClaims({ nbf: nowSeconds + 600 }),
  }
}
