import { signImage } from '@platform/oci/signature/sign'
import { by, type Case, flipped, rewritten } from './case.ts'
import { documentCases } from './corpus-documents.ts'
import { keyCases } from './corpus-keys.ts'
import { type KeyName, privatePem, put, repository, trust } from './stored.ts'

const casesOf = (key: KeyName): Case[] => [
  { name: `signed with ${key}`, expected: 'verified', make: by(key), keys: [trust(key)] },
  {
    name: `signed by us with ${key}`,
    expected: 'verified',
    make: ({ registry, ours }, layout) => signImage(registry, repository, ours, privatePem(key), { layout }),
    keys: [trust(key)],
  },
  { name: `signed with ${key}, not trusted`, expected: 'unknown_key', make: by(key), keys: [trust('other')] },
  {
    name: `changed after it was signed with ${key}`,
    expected: 'unknown_key',
    make: by(key, { payload: flipped }),
    keys: [trust(key)],
  },
]

const bothDigests: Case['digests'] = ({ ours, index }) => [ours, index]

const copies: Case[] = [
  { name: 'not signed', expected: 'unsigned', make: async () => undefined },
  {
    name: 'another one signed',
    expected: 'unsigned',
    make: (world, layout) => put[layout](world, world.theirs, 'p256'),
  },
  {
    name: 'another one’s signature copied',
    expected: 'signature_of_other_image',
    make: (world, layout) => by('p256', { names: world.theirs })(world, layout),
  },
  {
    name: 'another one’s signature copied, of a key that is not trusted',
    expected: 'unknown_key',
    make: (world, layout) => by('other', { names: world.theirs })(world, layout),
  },
  {
    name: 'another one’s signature copied beside a right one',
    expected: 'verified',
    make: async (world, layout) => {
      await by('p256', { names: world.theirs })(world, layout)
      await by('p256')(world, layout)
    },
  },
  { name: 'the platform signed and not its index', expected: 'verified', make: by('p256'), digests: bothDigests },
  {
    name: 'the index signed and not the platform',
    expected: 'verified',
    make: (world, layout) => put[layout](world, world.index, 'p256'),
    digests: bothDigests,
  },
  {
    name: 'the index’s signature beside the platform',
    expected: 'signature_of_other_image',
    make: (world, layout) => by('p256', { names: world.index })(world, layout),
    digests: bothDigests,
  },
]

const damages: Case[] = [
  { name: 'the signature changed', expected: 'unknown_key', make: by('p256', { signature: flipped }) },
  {
    name: 'the signature cut short',
    expected: 'unknown_key',
    make: by('p256', { signature: (each) => each.subarray(0, 20) }),
  },
  { name: 'no bytes of a signature', expected: 'unknown_key', make: by('p256', { signature: () => Buffer.of() }) },
  {
    name: 'the signature twice in a row',
    expected: 'unknown_key',
    make: by('p256', { signature: (each) => Buffer.concat([each, each]) }),
  },
  {
    name: 'a text without its digest signed',
    expected: 'signature_of_other_image',
    make: by('p256', rewritten(/sha256/g, 'SHA256')),
  },
  {
    name: 'no JSON signed',
    expected: 'signature_of_other_image',
    make: by('p256', { text: () => Buffer.from('no JSON') }),
  },
  {
    name: 'a layer of another media type',
    expected: 'broken_signature',
    make: by('p256', { mediaType: 'application/json' }),
  },
  {
    name: 'the text gone',
    expected: 'broken_signature',
    make: async (world, layout) => {
      await by('p256')(world, layout)
      world.registry.blobs.clear()
    },
  },
  {
    name: 'a broken and a strange signature beside a right one',
    expected: 'verified',
    make: async (world, layout) => {
      await by('p256', { mediaType: 'application/json' })(world, layout)
      await by('other')(world, layout)
      await by('p256')(world, layout)
    },
  },
  {
    name: 'right in one layout and strange in the other',
    expected: 'verified',
    make: async (world, layout) => {
      await put.referrer(world, world.ours, layout === 'referrer' ? 'p256' : 'other')
      await put.tag(world, world.ours, layout === 'tag' ? 'p256' : 'other')
    },
  },
]

/** All cases: made in both layouts, signed with P-256, and that key trusted, unless they say otherwise. */
export const corpus: Case[] = [
  ...(['p256', 'p384', 'p521', 'ed25519', 'rsa'] as const).flatMap(casesOf),
  ...(['sha256', 'sha384'] as const).map((hash): Case => {
    return { name: `P-384 over ${hash}`, expected: 'verified', make: by('p384', { hash }), keys: [trust('p384')] }
  }),
  {
    name: 'one of several keys',
    expected: 'verified',
    make: by('p256'),
    keys: [trust('other'), trust('rsa'), trust('p256')],
  },
  { name: 'nobody is trusted', expected: 'unknown_key', make: by('p256'), keys: [] },
  ...copies,
  ...damages,
  ...keyCases,
  ...documentCases,
]
