import { simpleSigningPayload } from '@platform/oci/signature/payload'
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

type Store = (fixtures: SignatureFixtures, layout: SignatureLayout) => Promise<unknown>
interface Options {
  keys?: TrustedKey[]
  digests?: (fixtures: SignatureFixtures) => string[]
  layouts?: SignatureLayout[]
}
type Case = [name: string, expected: 'verified' | UnverifiedProblem, store: Store, options?: Options]

const signedBy =
  (key: KeyName, changes?: Changes): Store =>
  (fixtures, layout) =>
    put[layout](fixtures, fixtures.ours, key, changes)

const copiedFrom =
  (image: 'theirs' | 'index', key: KeyName = 'p256'): Store =>
  (fixtures, layout) =>
    put[layout](fixtures, fixtures.ours, key, { names: fixtures[image] })

const inOrder =
  (...stores: Store[]): Store =>
  async (fixtures, layout) => {
    for (const store of stores) await store(fixtures, layout)
  }

const rewrite = (from: string | RegExp, to: string): Changes => ({
  text: (text) => Buffer.from(text.toString().replace(from, to)),
})

const flipBit = (bytes: Buffer): Buffer => {
  const copy = Buffer.from(bytes)
  copy[copy.length - 3]! ^= 1
  return copy
}

const withEnvelope = (bundle: { dsseEnvelope: object }, members: object): object => ({
  ...bundle,
  dsseEnvelope: { ...bundle.dsseEnvelope, ...members },
})
const signTwice = (bundle: { dsseEnvelope: { signatures: object[] } }): object =>
  withEnvelope(bundle, { signatures: Array(2).fill(bundle.dsseEnvelope.signatures[0]) })
const material = (verificationMaterial?: object): Changes => ({ bundle: (each) => ({ ...each, verificationMaterial }) })
const secondSubject = `"subject":[{"digest":{"sha256":"${'0'.repeat(64)}"}},`

const bundles: [name: string, expected: Case[1], changes: Changes][] = [
  ['with another media type', 'broken_signature', { bundle: (each) => ({ ...each, mediaType: 'application/json' }) }],
  ['without a media type', 'broken_signature', { bundle: (each) => ({ ...each, mediaType: undefined }) }],
  ['that is truncated', 'broken_signature', { bundle: (each) => Buffer.from(JSON.stringify(each).slice(0, -10)) }],
  ['that is a number', 'broken_signature', { bundle: () => 7 }],
  ['without an envelope', 'broken_signature', { bundle: (each) => ({ ...each, dsseEnvelope: undefined }) }],
  ['without signatures', 'broken_signature', { bundle: (each) => withEnvelope(each, { signatures: [] }) }],
  ['with two signatures', 'broken_signature', { bundle: signTwice }],
  ['with another payload type', 'broken_signature', { payloadType: 'text/plain' }],
  [
    'with another payload type than was signed',
    'broken_signature',
    { bundle: (each) => withEnvelope(each, { payloadType: 'text/plain' }) },
  ],
  ['with a certificate instead of a key', 'broken_signature', material({ certificate: { rawBytes: 'AAAA' } })],
  ['without verification material', 'broken_signature', material()],
  ['with the hint of another key', 'verified', material({ publicKey: { hint: 'other' } })],
  ['with another predicate', 'signature_of_other_image', rewrite('cosign/sign', 'cosign/vuln')],
  ['with an older statement type', 'signature_of_other_image', rewrite('Statement/v1', 'Statement/v0.1')],
  ['with two subjects, one of them the image', 'verified', rewrite('"subject":[', secondSubject)],
  ['without a subject', 'signature_of_other_image', rewrite(/"subject":\[.*?\]/, '"subject":[]')],
]

const withLogEntry: Changes = {
  bundle: (each) => ({
    ...each,
    verificationMaterial: { ...each.verificationMaterial, tlogEntries: [{ logIndex: '1' }] },
  }),
}

async function storeWithTwoLayers(fixtures: SignatureFixtures): Promise<void> {
  const bundle = await put.referrer(fixtures, fixtures.ours, 'p256')
  const manifest = (await fixtures.registry.manifest(repository, bundle.digest))?.content as Manifest
  await fixtures.registry.remove(repository, bundle.digest)
  const layers = [...manifest.layers, ...manifest.layers]
  const bytes = Buffer.from(JSON.stringify({ ...manifest, layers }))
  await fixtures.registry.putManifest(repository, 'two', bytes, manifest.mediaType)
}

const tagged =
  (annotations: (payload: Buffer) => Record<string, string>) =>
  async ({ registry, ours }: SignatureFixtures) => {
    const text = simpleSigningPayload('x', ours)
    const blob = await registry.putBlob(repository, text)
    return putTagged(registry, ours, [{ mediaType: simpleSigningType, ...blob, annotations: annotations(text) }])
  }

const referrer: Options = { layouts: ['referrer'] }
const tag: Options = { layouts: ['tag'] }
const certified = (text: Buffer) => ({
  [signatureAnnotation]: signBytes('other', text, 'sha256').toString('base64'),
  'dev.sigstore.cosign/certificate': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
  'dev.sigstore.cosign/bundle': '{"SignedEntryTimestamp":"AAAA"}',
})
const atomic = rewrite('cosign container', 'atomic container')

const documentCases: Case[] = [
  ...bundles.map(([name, expected, changes]): Case => [
    `a bundle ${name}`,
    expected,
    signedBy('p256', changes),
    referrer,
  ]),
  ['a log entry', 'verified', signedBy('p256', withLogEntry), referrer],
  ['a log entry with an untrusted key', 'unknown_key', signedBy('other', withLogEntry), referrer],
  ['a manifest with a second layer', 'broken_signature', storeWithTwoLayers, referrer],
  ['a payload of another type', 'signature_of_other_image', signedBy('p256', atomic), tag],
  ['a layer without a signature', 'broken_signature', tagged(() => ({})), tag],
  ['a certificate and a log entry with an untrusted key', 'unknown_key', tagged(certified), tag],
]

const pastDate = '2020-01-01T00:00:00Z'
const futureDate = '2100-01-01T00:00:00Z'

const lists: [name: string, expected: Case[1], ...limits: Partial<TrustedKey>[]][] = [
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
  ['a valid key', 'verified', { notBefore: pastDate, notAfter: futureDate }],
  ['an expired key', 'key_out_of_time', { notAfter: pastDate }],
  ['a key that is not yet valid', 'key_out_of_time', { notBefore: futureDate }],
  ['a key with an invalid end date', 'key_out_of_time', { notAfter: 'some day' }],
  ['a key with an invalid start date', 'key_out_of_time', { notBefore: 'some day' }],
  ['an expired and a valid entry', 'verified', { notAfter: pastDate }, {}],
  ['an expired and a foreign entry', 'key_out_of_time', { notAfter: pastDate }, { repositories: ['elsewhere'] }],
]

const keyCases = lists.map(([name, expected, ...limits]): Case => {
  return [name, expected, signedBy('p256'), { keys: limits.map((each) => trust('p256', each)) }]
})

function casesOf(key: KeyName): Case[] {
  const signed: Store = ({ registry, ours }, layout) =>
    signImage(registry, repository, ours, privatePem(key), { layout })
  const options = { keys: [trust(key)] }
  return [
    [`signed with ${key}`, 'verified', signedBy(key), options],
    [`signed by signImage with ${key}`, 'verified', signed, options],
    [`signed with untrusted ${key}`, 'unknown_key', signedBy(key), { keys: [trust('other')] }],
    [`changed after signing with ${key}`, 'unknown_key', signedBy(key, { payload: flipBit }), options],
  ]
}

const bothDigests: Options = { digests: ({ ours, index }) => [ours, index] }
const signedIn =
  (image: 'theirs' | 'index'): Store =>
  (fixtures, layout) =>
    put[layout](fixtures, fixtures[image], 'p256')

const copies: Case[] = [
  ['an unsigned image', 'unsigned', async () => undefined],
  ['another signed image', 'unsigned', signedIn('theirs')],
  ['a copied signature', 'signature_of_other_image', copiedFrom('theirs')],
  ['a copied signature of an untrusted key', 'unknown_key', copiedFrom('theirs', 'other')],
  ['a copied signature and a valid one', 'verified', inOrder(copiedFrom('theirs'), signedBy('p256'))],
  ['a signed platform image', 'verified', signedBy('p256'), bothDigests],
  ['a signed index', 'verified', signedIn('index'), bothDigests],
  ['a signature of the index at the platform image', 'signature_of_other_image', copiedFrom('index'), bothDigests],
]

const invalidSignature = (signature: Changes['signature']): Store =>
  signedBy('p256', { ...(signature && { signature }) })
const noJson = { text: () => Buffer.from('no JSON') }
const otherType = signedBy('p256', { mediaType: 'application/json' })

const damages: Case[] = [
  ['a changed signature', 'unknown_key', invalidSignature(flipBit)],
  ['a truncated signature', 'unknown_key', invalidSignature((each) => each.subarray(0, 20))],
  ['an empty signature', 'unknown_key', invalidSignature(() => Buffer.of())],
  ['a repeated signature', 'unknown_key', invalidSignature((each) => Buffer.concat([each, each]))],
  ['a payload without a digest', 'signature_of_other_image', signedBy('p256', rewrite(/sha256/g, 'SHA256'))],
  ['a payload that is not JSON', 'signature_of_other_image', signedBy('p256', noJson)],
  ['a layer of another media type', 'broken_signature', otherType],
  ['a missing payload', 'broken_signature', inOrder(signedBy('p256'), async ({ registry }) => registry.blobs.clear())],
  ['a broken, an unknown and a valid signature', 'verified', inOrder(otherType, signedBy('other'), signedBy('p256'))],
  [
    'a valid signature in one layout and an unknown one in the other',
    'verified',
    inOrder(signedBy('p256'), (fixtures, layout) =>
      put[layout === 'tag' ? 'referrer' : 'tag'](fixtures, fixtures.ours, 'other'),
    ),
  ],
]

const severalKeys = { keys: [trust('other'), trust('rsa'), trust('p256')] }

/** All cases. By default, each case is tested in both layouts, and only the P-256 key is trusted. */
export const corpus: Case[] = [
  ...(['p256', 'p384', 'p521', 'ed25519', 'rsa'] as const).flatMap(casesOf),
  ['P-384 with sha256', 'verified', signedBy('p384', { hash: 'sha256' }), { keys: [trust('p384')] }],
  ['P-384 with sha384', 'verified', signedBy('p384', { hash: 'sha384' }), { keys: [trust('p384')] }],
  ['several trusted keys', 'verified', signedBy('p256'), severalKeys],
  ['no trusted key', 'unknown_key', signedBy('p256'), { keys: [] }],
  ...copies,
  ...damages,
  ...keyCases,
  ...documentCases,
]
