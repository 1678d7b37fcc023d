import type { KeyObject } from 'node:crypto'
import type { Forgeries } from './forgeries.ts'
import { byEdDsa, type Claims, partsOf, tokenOf } from './jws.ts'

interface Relay {
  relayId: string
  key: KeyObject
}

/** Signed with the relay's own key, or with that of another relay, but not about this very request. */
export function wronglyClaimedByRelay(good: string, own: Relay, other: Relay, nowSeconds: number): Forgeries {
  const { readHeader: header, readClaims: claims } = partsOf(good)
  const withHeader = (change: Claims, key = own.key): string => tokenOf({ ...header, ...change }, claims, byEdDsa(key))
  const withClaims = (change: Claims): string => tokenOf(header, { ...claims, ...change }, byEdDsa(own.key))
  return {
    'the key of another relay': withHeader({}, other.key),
    'the name of another relay': withHeader({ kid: other.relayId }),
    'an unknown crit': withHeader({ crit: ['x'], x: 1 }),
    'the audience of users': withClaims({ aud: 'platform-api' }),
    'a list of other audiences': withClaims({ aud: ['a', 'b'] }),
    'no audience': withClaims({ aud: undefined }),
    'another path': withClaims({ path: '/api/v1/relay/goodby' }),
    'the path with a slash': withClaims({ path: `${String(claims['path'])}/` }),
    'no path': withClaims({ path: undefined }),
    'another body': withClaims({ bodySha256: 'A'.repeat(43) }),
    'half of the hash of the body': withClaims({ bodySha256: String(claims['bodySha256']).slice(0, 20) }),
    'no body': withClaims({ bodySha256: undefined }),
    'no id': withClaims({ jti: undefined }),
    'a short id': withClaims({ jti: 'x' }),
    'a long id': withClaims({ jti: 'x'.repeat(65) }),
    'no beginning': withClaims({ iat: undefined }),
    'no end': withClaims({ exp: undefined }),
    'a life of an hour': withClaims({ exp: nowSeconds + 3600 }),
    'an end in 2100': withClaims({ exp: 4_102_444_800 }),
    'a beginning in ten minutes': withClaims({ iat: nowSeconds + 600, exp: nowSeconds + 630 }),
    'ten minutes old': withClaims({ iat: nowSeconds - 600, exp: nowSeconds - 570 }),
    'not before ten minutes from now': withClaims({ nbf: nowSeconds + 600 }),
  }
}
