import type { SignatureLayout } from '@platform/oci/signature/sign'
import type { TrustedKey, UnverifiedProblem } from '@platform/oci/signature/verify'
import { type Changes, type KeyName, put, type World } from './stored.ts'

/** What lies in a registry, who is trusted, and what comes of it. */
export interface Case {
  name: string
  expected: 'verified' | UnverifiedProblem
  make: (world: World, layout: SignatureLayout) => Promise<unknown>
  /** The trusted keys: that called p256 by default. */
  keys?: TrustedKey[]
  /** What is asked about: the image `ours` by default. */
  digests?: (world: World) => string[]
  /** Both by default. */
  layouts?: SignatureLayout[]
}

/** A signature of `ours`, with changes. */
export const by =
  (key: KeyName, changes?: Changes) =>
  (world: World, layout: SignatureLayout): Promise<unknown> =>
    put[layout](world, world.ours, key, changes)

/** Changes the text before it is signed. */
export const rewritten = (from: string | RegExp, to: string): Changes => ({
  text: (text) => Buffer.from(text.toString().replace(from, to)),
})

/** Changes one bit near the end. */
export const flipped = (bytes: Buffer): Buffer => {
  const copy = Buffer.from(bytes)
  copy[copy.length - 3]! ^= 1
  return copy
}
