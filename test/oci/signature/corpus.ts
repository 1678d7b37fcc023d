import { simpleSigning } from '@platform/oci/signature/payload'
import { signatureAnnotation, type SignatureLayout, signImage, simpleSigningType } from '@platform/oci/signature/sign'
import type { TrustedKey, UnverifiedProblem } from '@platform/oci/signature/verify'
import type { Manifest } from '@platform/oci/types'
import {
  type Changes,
  type KeyName,
  privatePem,
  put,
  putTagged,
  repository,
  type SignatureFixtures,
  signBytes,
  trust,
} from './stored.ts'

/** Stored signatures, trusted keys and the expected verdict. */
/** What lies in a registry, who is trusted, and what comes of it. */
export interface Case {
  name: string
  expected: 'verified' | UnverifiedProblem
  store: (fixtures: SignatureFixtures, layout: SignatureLayout) => Promise<unknown>
  /** The trusted keys; the key p256 by default. */
  keys?: TrustedKey[]
  /** The verified digests; the image `ours` by default. */
  digests?: (fixtures: SignatureFixtures) => string[]
  /** Both layouts by default. */
  layouts?: SignatureLayout[]
}

/** Stores a signature of `ours`, with changes. */
const signedBy =
  (key: KeyName, changes?: Changes) =>
  (fixtures: SignatureFixtures, layout: SignatureLayout): Promise<unknown> =>
    put[layout](fixtures, fixtures.ours, key, changes)

/** Changes the payload before it is signed. */
const rewritten = (from: string | RegExp, to: string): Changes => ({
  text: (text) => Buffer.from(text.toString().replace(from, to)),
})

/** Flips one bit near the end. */
const flipped = (bytes: Buffer): Buffer => {
  const copy = Buffer.from(bytes)
  copy[copy.length - 3]! ^= 1
  return copy
}

/** Changes that only bundles can have. */
const bundles: [name: string, expected: Case['expected'], changes: Changes][] = [
  ['with another media type', 'broken_signature', { bundle: (each) => ({ ...each, mediaType: 'application/json' }) }],
  ['without a media type', 'broken_signature', { bundle: (each) => ({ ...each, mediaType: undefined }) }],
  ['that is truncated', 'broken_signature', { bundle: (each) => Buffer.from(JSON.stringify(each).slice(0, -10)) }],
  ['that is a number', 'broken_signature', { bundle: () => 7 }],
  ['without an envelope', 'broken_signature', { bundle: (each) => ({ ...each, dsseEnvelope: undefined }) }],
  ['without signatures', 'broken_signature', { bundle: (each) => withEnvelope(each, { signatures: [] }) }],
  [
    'with two signatures',
    'broken_signature',
    { bundle: (each) => withEnvelope(each, { signatures: Array(2).fill(each.dsseEnvelope.signatures[0]) }) },
  ],
  ['with another payload type', 'broken_signature', { payloadType: 'text/plain' }],
  [
    'with another payload type than was signed',
    'broken_signature',
    { bundle: (each) => withEnvelope(each, { payloadType: 'text/plain' }) },
  ],
  [
    'with a certificate instead of a key',
    'broken_signature',
    { bundle: (each) => ({ ...each, verificationMaterial: { certificate: { rawBytes: 'AAAA' } } }) },
  ],
  [
    'without verification material',
    'broken_signature',
    { bundle: (each) => ({ ...each, verificationMaterial: undefined }) },
  ],
  [
    'with the hint of another key',
    'verified',
    { bundle: (each) => ({ ...each, verificationMaterial: { publicKey: { hint: 'other' } } }) },
  ],
  ['with another predicate', 'signature_of_other_image', rewritten('cosign/sign', 'cosign/vuln')],
  ['with an older statement type', 'signature_of_other_image', rewritten('Statement/v1', 'Statement/v0.1')],
  [
    'with two subjects, one of them the image',
    'verified',
    rewritten('"subject":[', `"subject":[{"digest":{"sha256":"${'0'.repeat(64)}"}},`),
  ],
  ['without a subject', 'signature_of_other_image', rewritten(/"subject":\[.*?\]/, '"subject":[]')],
]

const withEnvelope = (bundle: { dsseEnvelope: object }, members: object): object => ({
  ...bundle,
  dsseEnvelope: { ...bundle.dsseEnvelope, ...members },
})

const withLogEntry: Changes = {
  bundle: (each) => ({
    ...each,
    verificationMaterial: { ...each.verificationMaterial, tlogEntries: [{ logIndex: '1' }] },
  }),
}

async function storeWithTwoLayers(fixtures: SignatureFixtures): Promise<void> {
  const stored = await put.referrer(fixtures, fixtures.ours, 'p256')
  const manifest = (await fixtures.registry.manifest(repository, stored.digest))?.content as Manifest
  await fixtures.registry.remove(repository, stored.digest)
  const layers = [...manifest.layers, ...manifest.layers]
  const bytes = Buffer.from(JSON.stringify({ ...manifest, layers }))
  await fixtures.registry.putManifest(repository, 'two', bytes, manifest.mediaType)
}

/** Stores a payload under the tag, with other annotations than a valid signature. */
const tagged =
  (annotations: (payload: Buffer) => Record<string, string>) =>
  async ({ registry, ours }: SignatureFixtures): Promise<unknown> => {
    const text = simpleSigning('x', ours)
    const blob = await registry.putBlob(repository, text)
    return putTagged(registry, ours, [{ mediaType: simpleSigningType, ...blob, annotations: annotations(text) }])
  }

const documentCases: Case[] = [
  ...bundles.map(([name, expected, changes]): Case => {
    return { name: `a bundle ${name}`, expected, store: signedBy('p256', changes), layouts: ['referrer'] }
  }),
  { name: 'a log entry', expected: 'verified', store: signedBy('p256', withLogEntry), layouts: ['referrer'] },
  {
    name: 'a log entry with an untrusted key',
    expected: 'unknown_key',
    store: signedBy('other', withLogEntry),
    layouts: ['referrer'],
  },
  {
    name: 'a manifest with a second layer',
    expected: 'broken_signature',
    store: storeWithTwoLayers,
    layouts: ['referrer'],
  },
  {
    name: 'a payload of another type',
    expected: 'signature_of_other_image',
    store: signedBy('p256', rewritten('cosign container', 'atomic container')),
    layouts: ['tag'],
  },
  { name: 'a layer without a signature', expected: 'broken_signature', store: tagged(() => ({})), layouts: ['tag'] },
  {
    name: 'a certificate and a log entry with an untrusted key',
    expected: 'unknown_key',
    store: tagged((text) => ({
      [signatureAnnotation]: signBytes('other', text, 'sha256').toString('base64'),
      'dev.sigstore.cosign/certificate': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
      'dev.sigstore.cosign/bundle': '{"SignedEntryTimestamp":"AAAA"}',
    })),
    layouts: ['tag'],
  },
]
const past = '2020-01-01T00:00:00Z'
const future = '2100-01-01T00:00:00Z'

/** A valid signature of `team/hello`, and lists of keys. */
const lists: [name: string, expected: Case['expected'], ...limits: Partial<TrustedKey>[]][] = [
  ['a key for this repository', 'verified', { repositories: ['team/hello'] }],
  ['a key for the repository', 'verified', { repositories: ['team/hello'] }],
  ['a key for the parent folder', 'verified', { repositories: ['x', 'team'] }],
  ['a key for the parent folder with a slash', 'verified', { repositories: ['team/'] }],
  ['a key for another repository', 'key_out_of_scope', { repositories: ['team/other'] }],
  ['a key for a prefix of the name', 'key_out_of_scope', { repositories: ['tea', 'team/hell'] }],
  ['a key for a subfolder', 'key_out_of_scope', { repositories: ['team/hello/x'] }],
  ['a key for the repository at this registry', 'verified', { repositories: ['registry.test/team/hello'] }],
  ['a key for this registry', 'verified', { repositories: ['registry.test'] }],
  ['a key for another registry', 'key_out_of_scope', { repositories: ['registry.test:5000/team'] }],
  ['a key for a local registry', 'key_out_of_scope', { repositories: ['localhost/team', 'localhost:1/team'] }],
  ['a key for no repository', 'key_out_of_scope', { repositories: [] }],
  ['a key for an empty name', 'key_out_of_scope', { repositories: ['', '/'] }],
  ['a valid key', 'verified', { notBefore: past, notAfter: future }],
  ['an expired key', 'key_out_of_time', { notAfter: past }],
  ['a key that is not yet valid', 'key_out_of_time', { notBefore: future }],
  ['a key with an invalid end date', 'key_out_of_time', { notAfter: 'some day' }],
  ['a key with an invalid start date', 'key_out_of_time', { notBefore: 'some day' }],
  ['an expired and a valid entry', 'verified', { notAfter: past }, {}],
  ['an expired and a foreign entry', 'key_out_of_time', { notAfter: past }, { repositories: ['elsewhere'] }],
]

const keyCases: Case[] = lists.map(([name, expected, ...limits]) => ({
  name,
  expected,
  store: signedBy('p256'),
  keys: limits.map((each) => trust('p256', each)),
}))

const casesOf = (key: KeyName): Case[] => [
  { name: `signed with ${key}`, expected: 'verified', store: signedBy(key), keys: [trust(key)] },
  {
    name: `signed by signImage with ${key}`,
    expected: 'verified',
    store: ({ registry, ours }, layout) => signImage(registry, repository, ours, privatePem(key), { layout }),
    keys: [trust(key)],
  },
  { name: `signed with untrusted ${key}`, expected: 'unknown_key', store: signedBy(key), keys: [trust('other')] },
  {
    name: `changed after signing with ${key}`,
    expected: 'unknown_key',
    store: signedBy(key, { payload: flipped }),
    keys: [trust(key)],
  },
]

const bothDigests: Case['digests'] = ({ ours, index }) => [ours, index]

const copies: Case[] = [
  { name: 'an unsigned image', expected: 'unsigned', store: async () => undefined },
  {
    name: 'another signed image',
    expected: 'unsigned',
    store: (fixtures, layout) => put[layout](fixtures, fixtures.theirs, 'p256'),
  },
  {
    name: 'a copied signature',
    expected: 'signature_of_other_image',
    store: (fixtures, layout) => signedBy('p256', { names: fixtures.theirs })(fixtures, layout),
  },
  {
    name: 'a copied signature of an untrusted key',
    expected: 'unknown_key',
    store: (fixtures, layout) => signedBy('other', { names: fixtures.theirs })(fixtures, layout),
  },
  {
    name: 'a copied signature and a valid one',
    expected: 'verified',
    store: async (fixtures, layout) => {
      await signedBy('p256', { names: fixtures.theirs })(fixtures, layout)
      await signedBy('p256')(fixtures, layout)
    },
  },
  { name: 'a signed platform image', expected: 'verified', store: signedBy('p256'), digests: bothDigests },
  {
    name: 'a signed index',
    expected: 'verified',
    store: (fixtures, layout) => put[layout](fixtures, fixtures.index, 'p256'),
    digests: bothDigests,
  },
  {
    name: 'a signature of the index at the platform image',
    expected: 'signature_of_other_image',
    store: (fixtures, layout) => signedBy('p256', { names: fixtures.index })(fixtures, layout),
    digests: bothDigests,
  },
]

const damages: Case[] = [
  { name: 'a changed signature', expected: 'unknown_key', store: signedBy('p256', { signature: flipped }) },
  {
    name: 'a truncated signature',
    expected: 'unknown_key',
    store: signedBy('p256', { signature: (each) => each.subarray(0, 20) }),
  },
  { name: 'an empty signature', expected: 'unknown_key', store: signedBy('p256', { signature: () => Buffer.of() }) },
  {
    name: 'a repeated signature',
    expected: 'unknown_key',
    store: signedBy('p256', { signature: (each) => Buffer.concat([each, each]) }),
  },
  {
    name: 'a payload without a digest',
    expected: 'signature_of_other_image',
    store: signedBy('p256', rewritten(/sha256/g, 'SHA256')),
  },
  {
    name: 'a payload that is not JSON',
    expected: 'signature_of_other_image',
    store: signedBy('p256', { text: () => Buffer.from('no JSON') }),
  },
  {
    name: 'a layer of another media type',
    expected: 'broken_signature',
    store: signedBy('p256', { mediaType: 'application/json' }),
  },
  {
    name: 'a missing payload',
    expected: 'broken_signature',
    store: async (fixtures, layout) => {
      await signedBy('p256')(fixtures, layout)
      fixtures.registry.blobs.clear()
    },
  },
  {
    name: 'a broken, an unknown and a valid signature',
    expected: 'verified',
    store: async (fixtures, layout) => {
      await signedBy('p256', { mediaType: 'application/json' })(fixtures, layout)
      await signedBy('other')(fixtures, layout)
      await signedBy('p256')(fixtures, layout)
    },
  },
  {
    name: 'a valid signature in one layout and an unknown one in the other',
    expected: 'verified',
    store: async (fixtures, layout) => {
      await put.referrer(fixtures, fixtures.ours, layout === 'referrer' ? 'p256' : 'other')
      await put.tag(fixtures, fixtures.ours, layout === 'tag' ? 'p256' : 'other')
    },
  },
]

/** All cases. By default in both layouts, signed with P-256, whose key is trusted. */
export const corpus: Case[] = [
  ...(['p256', 'p384', 'p521', 'ed25519', 'rsa'] as const).flatMap(casesOf),
  ...(['sha256', 'sha384'] as const).map((hash): Case => {
    return {
      name: `P-384 with ${hash}`,
      expected: 'verified',
      store: signedBy('p384', { hash }),
      keys: [trust('p384')],
    }
  }),
  {
    name: 'several trusted keys',
    expected: 'verified',
    store: signedBy('p256'),
    keys: [trust('other'), trust('rsa'), trust('p256')],
  },
  { name: 'no trusted key', expected: 'unknown_key', store: signedBy('p256'), keys: [] },
  ...copies,
  ...damages,
  ...keyCases,
  ...documentCases,
]
