import { createHash, timingSafeEqual } from 'node:crypto'

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Returns a check of tokens in constant time. An empty token admits no request. */
export function tokenCheck(token: string): (given: string | null) => boolean {
  const expected = digest(token)
  return (given) => token !== '' && given !== null && timingSafeEqual(digest(given), expected)
}
