import { createHash, timingSafeEqual } from 'node:crypto'

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Returns a function that compares candidates with `token` in constant time. An empty `token` matches no candidate. */
export function createTokenCheck(token: string): (candidate: string | null) => boolean {
  const expectedDigest = digest(token)
  return (candidate) => token !== '' && candidate !== null && timingSafeEqual(digest(candidate), expectedDigest)
}
