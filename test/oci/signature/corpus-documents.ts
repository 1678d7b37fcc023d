import { simpleSigning } from '@platform/oci/signature/payload'
import { signatureAnnotation, simpleSigningType } from '@platform/oci/signature/sign'
import type { Manifest } from '@platform/oci/types'
import { by, type Case, rewritten } from './case.ts'
import { type Changes, put, putTagged, repository, signBytes, type World } from './stored.ts'

/** What only bundles can be. */
const bundles: [name: string, expected: Case['expected'], changes: Changes][] = [
  ['another media type', 'broken_signature', { bundle: (each) => ({ ...each, mediaType: 'application/json' }) }],
  ['no media type', 'broken_signature', { bundle: (each) => ({ ...each, mediaType: undefined }) }],
  ['its end cut off', 'broken_signature', { bundle: (each) => Buffer.from(JSON.stringify(each).slice(0, -10)) }],
  ['a number in its place', 'broken_signature', { bundle: () => 7 }],
  ['no envelope', 'broken_signature', { bundle: (each) => ({ ...each, dsseEnvelope: undefined }) }],
  ['no signatures', 'broken_signature', { bundle: (each) => withEnvelope(each, { signatures: [] }) }],
  [
    'two signatures',
    'broken_signature',
    { bundle: (each) => withEnvelope(each, { signatures: Array(2).fill(each.dsseEnvelope.signatures[0]) }) },
  ],
  ['another kind of text', 'broken_signature', { payloadType: 'text/plain' }],
  [
    'another kind of text than was signed',
    'broken_signature',
    { bundle: (each) => withEnvelope(each, { payloadType: 'text/plain' }) },
  ],
  [
    'a certificate in place of a key',
    'broken_signature',
    { bundle: (each) => ({ ...each, verificationMaterial: { certificate: { rawBytes: 'AAAA' } } }) },
  ],
  ['no word on the key', 'broken_signature', { bundle: (each) => ({ ...each, verificationMaterial: undefined }) }],
  [
    'the hint of another key',
    'verified',
    { bundle: (each) => ({ ...each, verificationMaterial: { publicKey: { hint: 'other' } } }) },
  ],
  ['another predicate', 'signature_of_other_image', rewritten('cosign/sign', 'cosign/vuln')],
  ['a statement of an older kind', 'signature_of_other_image', rewritten('Statement/v1', 'Statement/v0.1')],
  [
    'two subjects, one of them this',
    'verified',
    rewritten('"subject":[', `"subject":[{"digest":{"sha256":"${'0'.repeat(64)}"}},`),
  ],
  ['no subject', 'signature_of_other_image', rewritten(/"subject":\[.*?\]/, '"subject":[]')],
]

const withEnvelope = (bundle: { dsseEnvelope: object }, members: object): object => ({
  ...bundle,
  dsseEnvelope: { ...bundle.dsseEnvelope, ...members },
})

const claim: Changes = {
  bundle: (each) => ({
    ...each,
    verificationMaterial: { ...each.verificationMaterial, tlogEntries: [{ logIndex: '1' }] },
  }),
}

async function withSecondLayer(world: World): Promise<void> {
  const sent = await put.referrer(world, world.ours, 'p256')
  const manifest = (await world.registry.manifest(repository, sent.digest))?.content as Manifest
  await world.registry.remove(repository, sent.digest)
  const layers = [...manifest.layers, ...manifest.layers]
  const bytes = Buffer.from(JSON.stringify({ ...manifest, layers }))
  await world.registry.putManifest(repository, 'two', bytes, manifest.mediaType)
}

/** A text under the tag, with annotations in place of those of a right signature. */
const tagged =
  (annotations: (text: Buffer) => Record<string, string>) =>
  async ({ registry, ours }: World): Promise<unknown> => {
    const text = simpleSigning('x', ours)
    const blob = await registry.putBlob(repository, text)
    return putTagged(registry, ours, [{ mediaType: simpleSigningType, ...blob, annotations: annotations(text) }])
  }

export const documentCases: Case[] = [
  ...bundles.map(([name, expected, changes]): Case => {
    return { name: `a bundle with ${name}`, expected, make: by('p256', changes), layouts: ['referrer'] }
  }),
  { name: 'a claim of a log', expected: 'verified', make: by('p256', claim), layouts: ['referrer'] },
  {
    name: 'a claim of a log, and a key that is not trusted',
    expected: 'unknown_key',
    make: by('other', claim),
    layouts: ['referrer'],
  },
  {
    name: 'a manifest with a second layer',
    expected: 'broken_signature',
    make: withSecondLayer,
    layouts: ['referrer'],
  },
  {
    name: 'a text of another type',
    expected: 'signature_of_other_image',
    make: by('p256', rewritten('cosign container', 'atomic container')),
    layouts: ['tag'],
  },
  { name: 'a layer without a signature', expected: 'broken_signature', make: tagged(() => ({})), layouts: ['tag'] },
  {
    name: 'a certificate, a claim of a log, and a key that is not trusted',
    expected: 'unknown_key',
    make: tagged((text) => ({
      [signatureAnnotation]: signBytes('other', text, 'sha256').toString('base64'),
      'dev.sigstore.cosign/certificate': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
      'dev.sigstore.cosign/bundle': '{"SignedEntryTimestamp":"AAAA"}',
    })),
    layouts: ['tag'],
  },
]
