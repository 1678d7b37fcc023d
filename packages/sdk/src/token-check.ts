import { createHash, timingSafeEqual } from 'node:crypto'

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Returns a function that compares tokens in constant time. If `token` is empty, it accepts no request. */
export function tokenCheck(token: string): (candidate: string | null) => boolean {
  const expected = digest(token)
  return (candidate) => token !== '' && candidate !== null && timingSafeEqual(digest(candidate), expected)
}
