import { signJws, verifyJws } from '@platform/relay/jws'
import { generateKeyPairSync, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const keys = new Map([['key-1', publicKey]])
const header = { alg: 'EdDSA', typ: 'test+jws', kid: 'key-1' }

function encode(value: unknown): string {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
}

function token(header: unknown, claims: unknown = {}, key = privateKey): string {
  const signed = `${encode(header)}.${encode(claims)}`
  return `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`
}

test('what is signed verifies', () => {
  const jws = signJws({ typ: 'test+jws', kid: 'key-1' }, { text: 'ä', number: 1.5 }, privateKey)
  expect(verifyJws(jws, 'test+jws', keys)).toEqual({ text: 'ä', number: 1.5 })
})

describe('a token is refused', () => {
  const valid = token(header)
  const [head, claims, signature] = valid.split('.') as [string, string, string]

  const forgeries: Record<string, string> = {
    'whose algorithm is none': token({ ...header, alg: 'none' }),
    'whose algorithm is spelled in another way': token({ ...header, alg: 'eddsa' }),
    'whose algorithm is symmetric': token({ ...header, alg: 'HS256' }),
    'of another type': token({ ...header, typ: 'relay+jwt' }),
    'without a type': token({ alg: 'EdDSA', kid: 'key-1' }),
    'of an unknown key': token({ ...header, kid: 'key-2' }),
    'whose kid is a name of every object': token({ ...header, kid: '__proto__' }),
    'without a kid': token({ alg: 'EdDSA', typ: 'test+jws' }),
    'that brings its own key': token({ ...header, jwk: publicKey.export({ format: 'jwk' }) }),
    'with a critical extension': token({ ...header, crit: ['b64'] }),
    'signed by another key': token(header, {}, generateKeyPairSync('ed25519').privateKey),
    'without a signature': `${head}.${claims}.`,
    'with two parts': `${head}.${claims}`,
    'with four parts': `${valid}.${signature}`,
    'with padding': `${head}.${claims}.${signature}==`,
    'with blanks in the signature': `${head}.${claims}.${signature} `,
    'whose claims were exchanged': `${head}.${encode({ admin: true })}.${signature}`,
    'whose header is no JSON': token('nonsense'),
    'whose claims are no object': token(header, [1]),
    'that is empty': '',
  }

  test.for(Object.keys(forgeries))('%s', (name) => {
    expect(() => verifyJws(forgeries[name]!, 'test+jws', keys)).toThrow()
  })
})
