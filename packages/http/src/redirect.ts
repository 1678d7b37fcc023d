import { type Result, result } from './result.ts'

/** Sends a browser on. Neither the address that it came by nor this answer is kept or told to anybody: both hold secrets. */
export const redirect = (location: string, cookies: readonly string[] = []): Result<302, undefined> =>
  result(302, undefined, { location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }, cookies)
