import { createHash, timingSafeEqual } from 'node:crypto'

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Returns a check of tokens in constant time. An empty token admits no request. */
export function tokenCheck(token: string): (candidate: string | null) => boolean {
  const expected = digest(token)
  return (candidate) => token !== '' && candidate !== null && timingSafeEqual(digest(candidate), expected)
}
