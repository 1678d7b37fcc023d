import { type Answer, answer } from './result.ts'

/** Sends a browser on. Neither the address that it came by nor this answer is kept or told to anybody: both hold secrets. */
export const redirect = (location: string, cookies: readonly string[] = []): Answer<302, undefined> =>
  answer(302, undefined, { location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }, cookies)
