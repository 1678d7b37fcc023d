import { verifyImage } from '@platform/oci/signature/verify'
import { array, assert, asyncProperty, integer, nat, tuple } from 'fast-check'
import { expect, test } from 'vitest'
import { corpus } from './corpus.ts'
import { put, repository, trust, type SignatureFixtures, startSignatureFixtures } from './stored.ts'
import { secondOpinion } from './second-opinion.ts'

const atMs = Date.parse('2025-11-22T00:00:00Z')
const p256 = [trust('p256')]

const verify = ({ registry, ours }: SignatureFixtures, keys = p256) =>
  verifyImage(registry, repository, [ours], keys, { atMs })

const cases = corpus.flatMap(({ layouts = ['referrer', 'tag'], ...each }) =>
  layouts.map((layout) => ({ ...each, layout })),
)

test.each(cases)(
  '$layout: $name is $expected, as in sigstore',
  async ({ store, layout, keys = p256, digests, expected }) => {
    const fixtures = await startSignatureFixtures()
    await store(fixtures, layout)
    const images = digests?.(fixtures) ?? [fixtures.ours]
    const verdict = await verifyImage(fixtures.registry, repository, images, keys, { atMs })
    const outcome = verdict.isVerified ? 'verified' : verdict.problem
    const opinion = secondOpinion(fixtures.registry, repository, images, keys, atMs)
    expect({ outcome, opinion }).toEqual({ outcome: expected, opinion: expected === 'verified' })
    if (verdict.isVerified) expect(images).toContain(verdict.digest)
    else expect(verdict.reason).toMatch(/^(No|A|What|sha256:[0-9a-f]{64}) .*\.$/)
  },
)

/** Changes of single bytes: the position and the added value. */
const changes = array(tuple(nat(5000), integer({ min: 1, max: 255 })), { minLength: 1, maxLength: 3 })

function changed(bytes: Buffer, places: [number, number][]): Buffer {
  const copy = Buffer.from(bytes)
  for (const [place, by] of places) copy[place % copy.length] = (copy[place % copy.length]! + by) & 255
  return copy
}

test('verifies no changed bundle that sigstore rejects', () =>
  assert(
    asyncProperty(changes, async (places) => {
      const fixtures = await startSignatureFixtures()
      const bundle = (each: object) => changed(Buffer.from(JSON.stringify(each)), places)
      await put.referrer(fixtures, fixtures.ours, 'p256', { bundle })
      const { isVerified } = await verify(fixtures)
      if (isVerified) expect(secondOpinion(fixtures.registry, repository, [fixtures.ours], p256, atMs)).toBe(true)
    }),
    { seed: 1, numRuns: 1000 },
  ))

test('verifies no changed payload or signature', () =>
  assert(
    asyncProperty(changes, changes, async (inPayload, inSignature) => {
      for (const layout of ['referrer', 'tag'] as const) {
        const [one, two] = [await startSignatureFixtures(), await startSignatureFixtures()]
        await put[layout](one, one.ours, 'p256', { payload: (each) => changed(each, inPayload) })
        await put[layout](two, two.ours, 'p256', { signature: (each) => changed(each, inSignature) })
        const verdicts = [await verify(one), await verify(two)]
        expect(verdicts.map(({ isVerified }) => isVerified)).toEqual([isUnchanged(inPayload), false])
      }
    }),
    { seed: 2, numRuns: 150 },
  ))

/** Whether the changes cancel each other out. */
const isUnchanged = (places: [number, number][]): boolean =>
  places.length > 1 && changed(Buffer.alloc(5000), places).every((each) => each === 0)
