import { generateKeyPairSync } from 'node:crypto'
import { TrustedKeys } from '@platform/core/lib/settings/trusted-keys'
import { expect, test } from 'vitest'

const pemOf = ({ publicKey }: ReturnType<typeof generateKeyPairSync>): string =>
  publicKey.export({ type: 'spki', format: 'pem' }).toString()

const strong = generateKeyPairSync('ec', { namedCurve: 'P-256' })

const isTaken = (pem: string): boolean => TrustedKeys.safeParse(JSON.stringify([{ name: 'it', pem }])).success

test('a key that can vouch for images may be trusted', () => {
  expect(isTaken(pemOf(strong))).toBe(true)
  expect(isTaken(pemOf(generateKeyPairSync('ed25519')))).toBe(true)
})

test.each([
  ['a weak one', pemOf(generateKeyPairSync('rsa', { modulusLength: 1024 }))],
  ['one on a curve that is not taken', pemOf(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }))],
  ['one that signs nothing', pemOf(generateKeyPairSync('x25519'))],
  ['a private one', strong.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()],
  ['none', 'a key'],
])('a key that would vouch for nothing is refused at the start: %s', (_name, pem) => {
  expect(isTaken(pem)).toBe(false)
})
