import type { SignatureLayout } from '@platform/oci/signature/sign'
import { verifyImage } from '@platform/oci/signature/verify'
import { corpus } from '../../oci/signature/corpus.ts'
import { secondOpinion } from '../../oci/signature/second-opinion.ts'
import { put, repository, trust, startSignatureFixtures } from '../../oci/signature/stored.ts'
import type { Random } from '../random.ts'

const atMs = Date.parse('2025-11-22T00:00:00Z')
const p256 = [trust('p256')]
const both: readonly SignatureLayout[] = ['referrer', 'tag']

/** How often two verifiers say the same. */
export interface Agreement {
  cases: number
  verified: number
  different: string[]
}

/** Every case of the corpus of the tests, with both layouts. */
export async function overCorpus(): Promise<Agreement> {
  const seen: Agreement = { cases: 0, verified: 0, different: [] }
  for (const { name, make, keys = p256, digests, layouts = both } of corpus) {
    for (const layout of layouts) {
      const made = await startSignatureFixtures()
      await make(made, layout)
      const asked = digests?.(made) ?? [made.ours]
      const { isVerified } = await verifyImage(made.registry, repository, asked, keys, { atMs })
      seen.cases++
      if (isVerified) seen.verified++
      if (isVerified !== secondOpinion(made.registry, repository, asked, keys, atMs))
        seen.different.push(`${layout}: ${name}`)
    }
  }
  return seen
}

/** Bundles of which a few bytes are others: what we verify, sigstore has to. */
export async function overChange(count: number, { below }: Random): Promise<Agreement> {
  const seen: Agreement = { cases: 0, verified: 0, different: [] }
  for (; seen.cases < count; seen.cases++) {
    const made = await startSignatureFixtures()
    const bundle = (each: object): Buffer => {
      const bytes = Buffer.from(JSON.stringify(each))
      for (let change = 0; change <= below(3); change++) bytes[below(bytes.length)] = below(256)
      return bytes
    }
    await put.referrer(made, made.ours, 'p256', { bundle })
    const { isVerified } = await verifyImage(made.registry, repository, [made.ours], p256, { atMs })
    if (isVerified) seen.verified++
    if (isVerified && !secondOpinion(made.registry, repository, [made.ours], p256, atMs))
      seen.different.push(`change ${seen.cases}`)
  }
  return seen
}
