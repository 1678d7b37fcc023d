import { verifyImage } from '@platform/oci/signature/verify'
import { array, assert, asyncProperty, integer, nat, tuple } from 'fast-check'
import { expect, test } from 'vitest'
import { corpus } from './corpus.ts'
import { put, repository, trust, type World, startSignatureFixtures } from './stored.ts'
import { secondOpinion } from './second-opinion.ts'

const atMs = Date.parse('2025-11-22T00:00:00Z')
const p256 = [trust('p256')]

const verify = ({ registry, ours }: World, keys = p256) => verifyImage(registry, repository, [ours], keys, { atMs })

const cases = corpus.flatMap(({ layouts = ['referrer', 'tag'], ...each }) =>
  layouts.map((layout) => ({ ...each, layout })),
)

test.each(cases)(
  '$layout: $name → $expected, and sigstore agrees',
  async ({ make, layout, keys = p256, digests, expected }) => {
    const made = await startSignatureFixtures()
    await make(made, layout)
    const asked = digests?.(made) ?? [made.ours]
    const verdict = await verifyImage(made.registry, repository, asked, keys, { atMs })
    const outcome = verdict.isVerified ? 'verified' : verdict.problem
    const opinion = secondOpinion(made.registry, repository, asked, keys, atMs)
    expect({ outcome, opinion }).toEqual({ outcome: expected, opinion: expected === 'verified' })
    if (verdict.isVerified) expect(asked).toContain(verdict.digest)
    else expect(verdict.reason).toMatch(/^(No|A|What|sha256:[0-9a-f]{64}) .*\.$/)
  },
)

/** Changes of single bytes, by their place and by what is added to them. */
const changes = array(tuple(nat(5000), integer({ min: 1, max: 255 })), { minLength: 1, maxLength: 3 })

function changed(bytes: Buffer, places: [number, number][]): Buffer {
  const copy = Buffer.from(bytes)
  for (const [place, by] of places) copy[place % copy.length] = (copy[place % copy.length]! + by) & 255
  return copy
}

test('whatever becomes of a bundle, nothing is verified that sigstore does not verify', () =>
  assert(
    asyncProperty(changes, async (places) => {
      const made = await startSignatureFixtures()
      const bundle = (each: object) => changed(Buffer.from(JSON.stringify(each)), places)
      await put.referrer(made, made.ours, 'p256', { bundle })
      const { isVerified } = await verify(made)
      if (isVerified) expect(secondOpinion(made.registry, repository, [made.ours], p256, atMs)).toBe(true)
    }),
    { seed: 1, numRuns: 1000 },
  ))

test('whatever becomes of a signed text or its signature, it is verified no more', () =>
  assert(
    asyncProperty(changes, changes, async (inText, inSignature) => {
      for (const layout of ['referrer', 'tag'] as const) {
        const made = await startSignatureFixtures()
        const payload = (each: Buffer) => changed(each, inText)
        await put[layout](made, made.ours, 'p256', { payload })
        const other = await startSignatureFixtures()
        const signature = (each: Buffer) => changed(each, inSignature)
        await put[layout](other, other.ours, 'p256', { signature })
        const verdicts = [await verify(made), await verify(other)]
        expect(verdicts.map(({ isVerified }) => isVerified)).toEqual([isSame(inText), false])
      }
    }),
    { seed: 2, numRuns: 150 },
  ))

/** Changes of one byte that take each other back. */
const isSame = (places: [number, number][]): boolean =>
  places.length > 1 && changed(Buffer.alloc(5000), places).every((each) => each === 0)
