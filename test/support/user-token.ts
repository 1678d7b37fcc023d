import type { UserClaims } from '@platform/modules/protocol'

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Returns an unsigned user token, because modules do not verify user tokens. */
export const userToken = (claims: Partial<Record<keyof UserClaims, unknown>>): string =>
  [
    part({ alg: 'EdDSA', typ: 'JWT' }),
    part({
      sub: 'user_ada',
      org: 'org_acme',
      permissions: ['clusters:read'],
      exp: Math.floor(Date.now() / 1000) + 60,
      ...claims,
    }),
    'signature',
  ].join('.')
