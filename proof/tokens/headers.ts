import type { Forgeries } from './forgeries.ts'

export type Headers = Readonly<Record<string, string>>

/** Ways to write `Authorization` that are not the one way, with a token that is good. */
export function wronglyWritten(good: string, scheme: 'Bearer' | 'Relay'): Readonly<Record<string, Headers>> {
  const values: Readonly<Record<string, string>> = {
    'no scheme': good,
    'the scheme Basic': `Basic ${good}`,
    'the scheme Token': `Token ${good}`,
    'the scheme DPoP': `DPoP ${good}`,
    'the other scheme': `${scheme === 'Bearer' ? 'Relay' : 'Bearer'} ${good}`,
    'the scheme twice': `${scheme} ${scheme} ${good}`,
    'a colon after the scheme': `${scheme}: ${good}`,
    'a tab after the scheme': `${scheme}\t${good}`,
    'a space before the scheme': ` ${scheme} ${good}`,
    'a space after the token': `${scheme} ${good} `,
    'a line break after the token': `${scheme} ${good}\r\n`,
    'NUL after the token': `${scheme} ${good}\0`,
    'a comma after the token': `${scheme} ${good},`,
    'two tokens with a comma': `${scheme} ${good},${scheme} ${good}`,
    'two tokens with a comma and a space': `${scheme} ${good}, ${scheme} ${good}`,
    'two tokens with a space': `${scheme} ${good} ${good}`,
    'quotes around the token': `${scheme} "${good}"`,
    'the name of a parameter before the token': `${scheme} token=${good}`,
    'a space of another kind': `${scheme}\u00a0${good}`,
    'a letter of another alphabet in the scheme': `${scheme.replace('e', 'е')} ${good}`,
  }
  const elsewhere: Readonly<Record<string, Headers>> = {
    'the header Proxy-Authorization': { 'proxy-authorization': `${scheme} ${good}` },
    'the header X-Authorization': { 'x-authorization': `${scheme} ${good}` },
    'the header X-Access-Token': { 'x-access-token': good },
  }
  const written = Object.entries(values).map(([name, authorization]) => [name, { authorization }])
  return { ...Object.fromEntries(written), ...elsewhere }
}

/** Tokens in the place of one that is good. */
export const inHeader = (forgeries: Forgeries, scheme: 'Bearer' | 'Relay'): Readonly<Record<string, Headers>> =>
  Object.fromEntries(Object.entries(forgeries).map(([name, token]) => [name, { authorization: `${scheme} ${token}` }]))

/** The same in the cookie of a browser that is on a page of the platform. */
export const inCookie = (forgeries: Forgeries, page: Headers): Readonly<Record<string, Headers>> =>
  Object.fromEntries(
    Object.entries(forgeries).map(([name, token]) => [
      `${name}, as a cookie`,
      { ...page, cookie: `__Host-plat_access=${token}` },
    ]),
  )
