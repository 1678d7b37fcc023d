/** The headers of a request; names are lower-case. */
export type RequestHeaders = Readonly<Record<string, string | undefined>>

/** The value of a cookie that a browser has sent; '' where it has none of that name. */
export function cookieOf({ cookie = '' }: RequestHeaders, name: string): string {
  const pairs = cookie.split(';').map((pair) => pair.trim())
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? ''
}
